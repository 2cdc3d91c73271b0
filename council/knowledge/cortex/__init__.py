"""The Cortex (Protocol 93, QUERY_CORTEX): one index, by words and by meaning, over what READ_FILE may read,
another over archived memory. `cortex` is the way in; `tantivy_index` is the only module that knows the engine."""

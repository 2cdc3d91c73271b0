"""The keys of a home: where they are kept (`sources`), and what is derived from them (`keyring`)."""

"""The keys of a home: where they are kept (`key_sources`), and which are in use (`keyring`)."""

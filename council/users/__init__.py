"""The people on whose behalf commands may act, and their roles."""

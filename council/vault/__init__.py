"""Encrypted credentials: sealed (`sealing`), kept in the database (`vault`) or elsewhere (`aws`), read only when audited."""

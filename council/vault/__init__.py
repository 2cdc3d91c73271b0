"""Encrypted credentials: sealed (`sealing`), kept in the database (`database`) or elsewhere (`aws`), read only when audited."""

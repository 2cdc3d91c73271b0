"""Bytes on disk: atomic files and the home's lock (`files`), the database (`store`), the one walk for untrusted paths
(`paths`). Every door ends in the one `command_drop`."""

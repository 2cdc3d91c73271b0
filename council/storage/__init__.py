"""Bytes on disk: atomic files and the home's lock (`files`), the one walk for untrusted paths (`paths`), the one
drop that every door ends in (`drop`)."""

"""The quotations and citations of a text, and where they stand in what was read: found, found elsewhere, or
`[unverified]`."""

"""What a text quotes and cites, and whether that stands in what was read: found, found elsewhere, or `[unverified]`."""

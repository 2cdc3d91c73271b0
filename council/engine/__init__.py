"""Runs: what they record (`records`, `journal`), how they end (`commit`, `receipts`), and who runs when (`engine`, `lanes`)."""

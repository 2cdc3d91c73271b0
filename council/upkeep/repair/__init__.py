"""`council repair`: finds what a crash or a hand left inconsistent in a home, mends it from journals and receipts, and names
the rest. `repair.py` holds the order; the other files each know one kind of thing."""

"""Runs: which commands become one (`admission`), who runs when (`queue`, `lanes`), the work itself (`execution`), what is
recorded (`journal`, `records`), and how a run ends (`commit`, `receipts`)."""

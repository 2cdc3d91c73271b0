"""Changes that a person approves before they are made: drafts, confirmations, what was applied, and how it is undone."""

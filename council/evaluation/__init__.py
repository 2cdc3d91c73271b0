"""`council eval`: golden questions answered by one call, by a vote and by the council, at an equal budget of tokens.

It tells what each got right, and which of the two that cost the same is worth it.
"""

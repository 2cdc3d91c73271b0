"""The tools that agents may ask for: one of them (`tool`), the allowlists (`registry`), and the spelling of a call
(`tokens`)."""

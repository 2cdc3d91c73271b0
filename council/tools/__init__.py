"""The tools that agents may ask for: one (`base`), the allowlists (`registry`), and the spelling of a call
(`tokens`)."""

"""What agents may ask for: a tool (`base`), who may call which (`registry`), and how a call is written (`tokens`)."""

"""What a command is (`models`), how bytes become plain values (`documents`; where they cannot,
`json_faults` says what to change), and values a command (`parsing`).

Pure: no file is touched here.
"""

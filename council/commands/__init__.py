"""What a command is (`models`), how bytes become plain values (`documents`), and values a command (`parsing`).

Pure: no file is touched here.
"""

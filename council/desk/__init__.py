"""The questions that any door may ask of a home: command line, window and HTTP API. Nothing here prints.

Each takes a `desk.Desk`. The drain, which takes work off the inbox, is handed in by the door.
"""

"""What any door may ask of a home: the command line today, HTTP and MCP next. No printing, and no logic of a door.

`desk.Desk` is what they stand on. What takes work off the inbox is handed in by the door.
"""

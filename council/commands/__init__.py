"""What a command is (`models`) and how bytes become one (`parsing`). Pure: no file is touched here."""

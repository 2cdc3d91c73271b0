"""The HTTP server that runs beside the daemon: its limits, its errors, its routes. It holds no logic of a system."""

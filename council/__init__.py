"""Council: drop a command file, get a decision you can audit. See README.md for the way in."""

__version__ = "0.1.0"

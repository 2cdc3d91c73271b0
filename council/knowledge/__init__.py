"""The home as agents may know it: the library of readable files and the tools over it (Protocol 93)."""

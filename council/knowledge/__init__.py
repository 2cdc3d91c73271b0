"""What agents may know of the home: the library of readable files and the tools over it (Protocol 93)."""

"""Guesses the file that was meant by a path that cannot be read. The guess is for people, not for agents: names of
files tell what others wrote."""

from __future__ import annotations

import difflib
from pathlib import PurePosixPath

from council.errors import PathRefused
from council.knowledge.library import Library

_SHOWN = 3
_ALIKE = 0.7  # of difflib: one letter that lacks in eight; a guess that is far off is worse than none
_PATTERN_SIGNS = "*?["


def better_fix(library: Library, path: str, error: PathRefused) -> str:
    """The fix for the refusal of `path`, with names of files where some offer themselves; else the error's own."""
    if error.reason == "directory" or (error.reason == "segment" and path.endswith("/")):
        return _named(library, f"{path.rstrip('/')}/**", "name the files in it") or "it holds no file that can be read"
    if error.reason in ("not_found", "not_a_folder"):
        if any(sign in path for sign in _PATTERN_SIGNS):
            return _named(library, path, "each path names one file: name those that fit") or "each path names one file"
        try:
            found, _ = library.list("**")
        except PathRefused:
            found = []
        # The files of the same name in another folder, or of a name that is spelled almost so.
        stems = {each: PurePosixPath(each).stem.casefold() for each in found}
        name = PurePosixPath(path)
        same = [each for each in found if PurePosixPath(each).name.casefold() == name.name.casefold()]
        alike = difflib.get_close_matches(name.stem.casefold(), stems.values(), n=1, cutoff=_ALIKE)
        if near := (same or [each for each, stem in stems.items() if stem in alike])[:_SHOWN]:
            return f"did you mean {' or '.join(f'`{name}`' for name in near)}?"
    return error.fix


def _named(library: Library, glob: str, told: str) -> str:
    try:
        found, more = library.list(glob)
    except PathRefused:
        return ""
    if not found:
        return ""
    left = len(found) - _SHOWN
    rest = f" and {'more than ' if more else ''}{left} more" if left > 0 else ""
    return f"{told}: {', '.join(f'`{name}`' for name in found[:_SHOWN])}{rest}"

"""Tells a person what to change where a text is not JSON. It goes by the text more than by the parser's words, which
differ between versions of Python."""

from __future__ import annotations

import json

_INSIDE_A_TEXT = {  # the parser's words begin so, and are cut off at the place
    "Unterminated string": (
        "a string without an end",
        "the text ends too early, inside a string: finish it, or close the quotation mark",
    ),
    "Invalid control character": (
        "a line break, tab or control character inside a string",
        "a string must stay on one line: write \\n for a line break and \\t for a tab",
    ),
    "Invalid \\": ("a single backslash inside a string", "a backslash in a string must be written twice: \\\\"),
}
_CONTROLS = {"\n": "a line break inside a string", "\r": "a line break inside a string", "\t": "a tab inside a string"}
_PYTHON_WORDS = ("True", "False", "None")
_ENDS_TOO_EARLY = "the text ends too early; finish it, and drop a file whole (write it elsewhere, then rename it)"
_SURPLUS_COMMA = "remove the comma before the closing bracket"


def fault_of(text: str, error: json.JSONDecodeError) -> str:
    """The fault, in a few words."""
    for beginning, (fault, _) in _INSIDE_A_TEXT.items():
        if error.msg.startswith(beginning):
            return _CONTROLS.get(text[error.pos : error.pos + 1], fault)
    return f"{error.msg[:1].lower()}{error.msg[1:]}"


def fix_of(text: str, error: json.JSONDecodeError) -> str:
    """The fix in one sentence; for a fault that is not known here, where to look."""
    said = error.msg
    for beginning, (_, fix) in _INSIDE_A_TEXT.items():
        if said.startswith(beginning):
            return fix
    here, before = text[error.pos :].lstrip(), text[: error.pos].rstrip()
    if not here:
        return _ENDS_TOO_EARLY
    is_extra = said.startswith("Extra data")
    if here[0] == "," and here[1:].lstrip()[:1] in ("}", "]"):
        return _SURPLUS_COMMA
    if here[0] in "}]":
        if is_extra:
            return f"remove this {here[0]}: nothing is left to close"
        if before.endswith(","):
            return _SURPLUS_COMMA
        if before.endswith(":"):
            return "write the value that is missing after the colon"
        if before.endswith('"') and "':'" in said:
            return "write a colon and a value after this key"
        return f"close what was opened last before this {here[0]}"
    if is_extra:
        return "one JSON object is one command: remove what follows it"
    if here.startswith(("//", "/*", "#")):
        return "JSON has no comments: remove it, or write a YAML file"
    if here[0] in "'‘’“”„":
        return 'JSON strings need double quotes: "like this"'
    if here[0] == "," and before.endswith((",", "{", "[")):
        return "remove this comma"
    if here.startswith(_PYTHON_WORDS):
        return "JSON writes true, false and null"
    if "delimiter" in said and "':'" in said:
        return "put a colon between the key and its value"
    if "delimiter" in said:
        return "put a comma between two entries (it may be missing at the end of the line before)"
    if before.endswith(("{", ",")) and said.startswith("Expecting property name"):
        return 'keys need double quotes: "like_this"'
    if not before:
        return 'begin with a brace: {"task_description": "…", …}'
    if here[0].isalpha():
        return 'text needs double quotes: "like this"'
    return "correct the text there; an editor with JSON support marks the mistake"

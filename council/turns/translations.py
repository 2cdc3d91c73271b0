"""Council's own words around an answer, in the language of the request. They stand in `resources/wording.yaml`.

Words that nobody vouches for in that language stay English. So do notes, tables and errors: they are the record.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from importlib.resources import files

import yaml


@lru_cache(maxsize=16)
def wording(language: str) -> Mapping[str, str]:
    """The words of a language by their English ones. `language` is a tag such as `de` or `pt-BR`."""
    tag = language.partition("-")[0].lower()
    if tag in ("", "en"):
        return {}
    table = yaml.safe_load(files("council").joinpath("resources/wording.yaml").read_text(encoding="utf-8"))
    return {english: words[tag] for english, words in table.items() if tag in words}

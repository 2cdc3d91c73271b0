"""Words of English and German text: its language, tokens, stems, stop words, and the words of a task."""

from __future__ import annotations

import re
import threading
import tomllib
from collections import Counter
from collections.abc import Sequence
from functools import cache, lru_cache
from importlib.resources import files
from typing import Any, Literal

Language = Literal["en", "de", ""]  # "": too few words to tell, as in a table

_WORD = re.compile(r"[^\W\d_]+(?:['’\-‑][^\W\d_]+)*")
_LANGUAGE_WORDS = 25  # fewer words say little about a language
# Different foreign ones in a single line, and half as many English or German ones at most. A task is no list of names.
_FOREIGN_WORDS, FOREIGN_TASK_WORDS = 3, 2
# Shares of the commonest words. Prose of English or German has 0.35 to 0.55 of its own; a list may have none.
_LANGUAGE_SHARE, _FOREIGN_SHARE = 0.05, 0.1
_LAST_LATIN = "\u024f"  # of the letters that European languages write
_CAPITALISED = r"\b[^\W\d_a-zß-ÿ][\w'’-]{0,40}"

_FILE_NAME = re.compile(
    r"\.(?:md|markdown|txt|csv|tsv|json|ya?ml|toml|py|rst|pdf|docx|html?)\W{0,3}$|://", re.IGNORECASE
)
_SENTENCE_START = re.compile(r"(?:^|[.!?:]\s+|\n)[\"'“(*-]*\s*$")
_NAME_WEIGHT = 0.35  # a proper name in the task says whose decision it is; every byline repeats it
_WEAK_WEIGHT = 0.9  # of two lines that are else alike, the one of the heating, and not that of the costs


@cache
def lexicon() -> dict[str, Any]:
    return tomllib.loads(files("council.llm.offline").joinpath("words.toml").read_text("utf-8"))


@cache
def words(table: str, name: str) -> frozenset[str]:
    return frozenset(lexicon()[table][name].split())


@cache
def weak_words() -> frozenset[str]:
    """Stems that introduce a figure, or head figures of any subject."""
    return frozenset(stem(word, language) for word in words("words", "weak") for language in ("en", "de"))


@cache
def spellings(table: str) -> str:
    return f"(?:{'|'.join(lexicon()[table].values())})"


def named(table: str, text: str) -> str:
    """The name of what `text` spells; empty for what no entry spells."""
    return next((name for name in lexicon()[table] if pattern(table, name).fullmatch(text.strip())), "")


@cache
def pattern(table: str, name: str, *, end: str = "") -> re.Pattern[str]:
    lines = "|".join(lexicon()[table][name].split("\n")).strip("|")
    return re.compile(rf"(?<!\w)(?:{lines})(?!\w){end}", re.IGNORECASE)


def language_of(text: str, foreign_words: int = _FOREIGN_WORDS) -> Language | None:
    """English or German by their commonest words; "" where these tell nothing, as in a short text or a list. None on
    the evidence of another language: its own commonest words, or letters that are not Latin."""
    letters = [char for char in text if char.isalpha()]
    if len(letters) > _LANGUAGE_WORDS and 2 * sum(char > _LAST_LATIN for char in letters) > len(letters):
        return None
    spoken = Counter(word.lower() for word in tokens(text))
    if spoken.total() < _LANGUAGE_WORDS:
        # `de la` of "Tour de la région" is part of a name. The first word has its capital anyway: another one must follow.
        inside = rf"(?:\s{spellings('names')})+(?!\w)"
        named_so = rf"((?<=\s){_CAPITALISED}|{_CAPITALISED}(?={inside}\s{_CAPITALISED})){inside}"
        said = tokens(re.sub(named_so, r"\1", text))
        small = {word.lower() for at, word in enumerate(said) if not at or word.islower()}  # `Los Angeles` is a name
        foreign = max(len(small & words("foreign", name)) for name in lexicon()["foreign"])
        own = max(len(small & words("stop", name)) for name in ("de", "en"))
        return None if foreign >= max(foreign_words, 2 * own) else ""
    shares = {
        (table, name): sum(spoken[word] for word in words(table, name)) / spoken.total()
        for table in ("stop", "foreign")
        for name in lexicon()[table]
    }
    foreign_share = max(share for (table, _), share in shares.items() if table == "foreign")
    german, english = shares["stop", "de"], shares["stop", "en"]
    if foreign_share > max(_FOREIGN_SHARE, german, english):
        return None
    if max(german, english) < _LANGUAGE_SHARE or max(german, english) < 2 * min(german, english):
        return ""
    return "de" if german > english else "en"


def task_language(task: str) -> Language:
    said = [word.lower() for word in tokens(task)]
    german, english = (sum(word in words("stop", name) for word in said) for name in ("de", "en"))
    return "de" if german > english else "en"


def tokens(text: str) -> list[str]:
    """A hyphenated word is one."""
    return _WORD.findall(text)


_stemming = threading.Lock()


@cache
def _stemmer(language: str) -> Any:
    from snowballstemmer import stemmer  # loaded with the first word of an offline run

    return stemmer("german" if language == "de" else "english")


@lru_cache(maxsize=65_536)  # a pure function; the cache only spares time, and its size bounds it
def stem(word: str, language: Language = "en") -> str:
    """A key under which forms of one word meet: hosting, hosted, hosts -> host. Not for display."""
    plain = re.sub(r"['’]s?$|['’\-‑]", "", word.lower())
    with _stemming:  # a stemmer keeps the word on itself
        return str(_stemmer(language).stemWord(plain))


def is_content(word: str) -> bool:
    """Recognises a word that says something about the subject: no stop word, three letters or more."""
    bare = word.lower().replace("’", "'")
    return len(word) > 2 and bare not in words("stop", "en") and bare not in words("stop", "de")


def content_stems(text: str, language: Language = "en") -> list[str]:
    return [stem(word, language) for word in tokens(text) if is_content(word)]


def task_terms(task: str, language: Language) -> dict[str, str]:
    """Stem -> the word as the task first wrote it, in order; stop words, task verbs and file names left out."""
    prose = " ".join(piece for piece in task.split() if not _FILE_NAME.search(piece))
    terms: dict[str, str] = {}
    for word in tokens(prose):
        if is_content(word) and word.lower() not in words("words", "task"):
            terms.setdefault(stem(word, language), word)
    return terms


def term_weights(task: str, language: Language) -> dict[str, float]:
    """Stem -> its weight in ranking: 1, or less for words of any subject, and for such as an English task writes only as part
    of a name."""
    terms = task_terms(task, language)
    plain = {
        stem(match.group(), language)
        for match in _WORD.finditer(task)
        if match.group().islower()
        or match.group().isupper()
        or _SENTENCE_START.search(task[max(0, match.start() - 6) : match.start()])
    }
    named = set() if language == "de" else terms.keys() - plain
    return {key: _NAME_WEIGHT if key in named else _WEAK_WEIGHT if key in weak_words() else 1.0 for key in terms}


def missing_words(terms: dict[str, str], texts: Sequence[str], task: str) -> list[str]:
    """Words of the task, as written, of which not even the first letters stand in a text; neighbours are one phrase. Of
    a long stem three fifths are enough: a false gap costs more trust than a missed one."""
    written = "\n".join(texts).lower()
    written += re.sub(r"[\s'’‑-]+", "", written)  # back up = backup
    missing: list[str] = []
    for key, word in terms.items():
        parts = [part for part in re.split(r"[-‑]", word.lower()) if len(part) > 2]
        if any(_start(part) in written for part in parts) or _start(key) in written:
            continue
        if missing and re.search(rf"\b{re.escape(missing[-1])}\s+{re.escape(word)}\b", task):
            missing[-1] = f"{missing[-1]} {word}"
        else:
            missing.append(word)
    return missing


def _start(word: str) -> str:
    return word[: -(-len(word) * 3 // 5)] if len(word) >= 8 else word

"""Words of English and German text: its language, tokens, stems, stop words, and the words of a task."""

from __future__ import annotations

import re
import threading
import tomllib
from collections.abc import Sequence
from functools import cache, lru_cache
from importlib.resources import files
from typing import Any, Literal

Language = Literal["en", "de", ""]  # "": too few words to tell, as in a table

_WORD = re.compile(r"[^\W\d_]+(?:['’\-‑][^\W\d_]+)*")
_LANGUAGE_WORDS = 25  # of fewer words, as many must be of the commonest as in prose
# Shares of the commonest words. Prose of English or German has 0.35 to 0.55 of its own, other languages up to 0.33.
_LANGUAGE_SHARE, _OWN_SHARE = 0.05, 0.35
# How many times likelier another language is than both. A list of names gets 50, `Omnibus mieten` 400, a foreign note 10,000.
_FOREIGN_ODDS, FOREIGN_TASK_ODDS = 10_000, 20
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


_identifying = threading.Lock()


@cache
def _identifier() -> Any:
    # Takes a second and 100 MB: loaded with the first text that has few English or German small words.
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    return LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)


def _odds(text: str) -> dict[str, float]:
    with _identifying:  # turns are answered in threads
        return dict(_identifier().rank(text))


def language_of(text: str, foreign_odds: float = _FOREIGN_ODDS) -> Language | None:
    """English or German by their commonest words; "" where these tell nothing, as in a short text or a list. None where
    another language is `foreign_odds` times likelier than both; one or two words need as much as a document."""
    spoken = [word.lower() for word in tokens(text)]
    german, english = (
        sum(word in words("stop", name) for word in spoken) / max(1, len(spoken)) for name in ("de", "en")
    )
    if spoken and max(german, english) < _OWN_SHARE:
        # `de la` of "Tour de la région" is part of a name. The first word has its capital anyway: another one must follow.
        inside = rf"(?:\s{spellings('names')})+(?!\w)"
        named_so = rf"((?<=\s){_CAPITALISED}|{_CAPITALISED}(?={inside}\s{_CAPITALISED})){inside}"
        likely = _odds(" ".join(tokens(re.sub(named_so, r"\1", text))))
        own = likely.pop("de") + likely.pop("en")
        if max(likely.values()) > own * (foreign_odds if len(spoken) > 2 else _FOREIGN_ODDS):
            return None
    if (
        (len(spoken) < _LANGUAGE_WORDS and max(german, english) < _OWN_SHARE)
        or max(german, english) < _LANGUAGE_SHARE
        or max(german, english) < 2 * min(german, english)
    ):
        return ""
    return "de" if german > english else "en"


def task_language(task: str) -> Language:
    """The likelier one; English where nothing tells, as in a number."""
    said = [word.lower() for word in tokens(task)]
    likely = {name: float(sum(word in words("stop", name) for word in said)) for name in ("de", "en")}
    if said and likely["de"] == likely["en"]:
        likely = _odds(" ".join(said))
    return "de" if likely["de"] > likely["en"] else "en"


def tokens(text: str) -> list[str]:
    """A hyphenated word is one."""
    return _WORD.findall(text)


_INVERTED = (
    r"\b(?:should|shall|can|could|may|must|will|would|do|does|did) (?:[\w-]+ ){0,2}"  # a subject and its verb follow
)
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
        joined = rf"\b{re.escape(missing[-1])}\s+{re.escape(word)}\b" if missing else r"(?!)"
        if re.search(joined, task) and not re.search(_INVERTED + joined, task, re.IGNORECASE):
            missing[-1] = f"{missing[-1]} {word}"
        else:
            missing.append(word)
    return missing


def _start(word: str) -> str:
    return word[: -(-len(word) * 3 // 5)] if len(word) >= 8 else word

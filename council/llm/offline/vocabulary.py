"""Words of English text: tokens, light stems, stop words. Other languages pass through unstemmed and unstopped."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from itertools import pairwise

_WORD = re.compile(r"[^\W\d_]+(?:['’\-‑][^\W\d_]+)*")

_STOP = """a about above across after again against ago all almost along already also although always am among an and
    another any anyone anything are around as at away back be became because become been before being below besides
    between both but by came can cannot come comes could did do does doing done down during each either else enough
    etc even ever every everything few for from further get gets give given gives go goes going got had has have
    having he hence her here hers him his how however i if in instead into is it its itself just keep keeps know least
    less let like likely long made make makes many may maybe me might mine more most much must my near need needs
    neither never no nobody none nor not nothing now of off often on once one only onto or other others otherwise our
    ours out over own part per perhaps put quite rather really said same say says see seem seems seen shall she should
    since so some somebody somehow someone something soon still such take taken takes than that the their theirs them
    then there therefore these they thing things this those though three through thus to together too toward towards
    two under until up upon us use used uses using very via want wants was way we well went were what whatever when
    where whether which while who whole whom whose why will with within without would yes yet you your yours don't
    doesn't didn't isn't aren't wasn't can't won't it's that's"""
STOP_WORDS = frozenset(_STOP.split())

_SENTENCE_START = re.compile(r"(?:^|[.!?:]\s+|\n)[\"'“(*-]*\s*$")
_FILE_NAME = re.compile(r"\.(?:md|markdown|txt|csv|tsv|json|ya?ml|toml|py|rst)\W{0,3}$|://", re.IGNORECASE)
_NAME_WEIGHT = 0.35  # a proper name in the task says whose decision it is; every byline repeats it

# What a task says about the work itself, not about its subject: never worth reporting as missing from a document.
_TASK = """advise advice agree analyse analysis analyze answer argue assess assessment basis board choice choose clear
    clearly compare comparison conclude conclusion consider council decide decided decision deliberate describe
    determine discuss document documents draft ensure evaluate evaluation examine explain file files find finding
    focus following help identify include including input inputs issue issues judge keeping list look main matter mean
    meaning means name note opinion option options outcome page pages particular please point points possible prepare
    produce propose proposal provide question questions reason reasons recommend recommendation regarding report respect
    result review section settle settled short should state statement suggest summarise summarize summary task tell
    text think understand verify vote votes voted voting weigh weighing work write"""
TASK_WORDS = frozenset(_TASK.split())

_SUFFIXES = (("ations", "at"), ("ation", "at"), ("ings", ""), ("ions", ""), ("ing", ""), ("ion", ""), ("edly", ""),
             ("ed", ""), ("ly", ""), ("es", ""), ("s", ""))  # fmt: skip


@lru_cache(maxsize=65_536)  # a pure function; the cache only spares time, and its size bounds it
def stem(word: str) -> str:
    """A crude key under which forms of one English word meet: hosting, hosted, hosts -> host. Not for display."""
    word = re.sub(r"['’]s?$|['’\-‑]", "", word.lower())
    if word.endswith("ies") and len(word) > 4:
        return word[:-3] + "y"
    for suffix, replacement in _SUFFIXES:
        rest = word.removesuffix(suffix)
        if (
            rest != word
            and len(rest) >= (4 if suffix.startswith(("at", "ion")) else 3)
            and not (suffix == "s" and rest[-1] in "su")
        ):
            word = rest + replacement
            break
    if len(word) > 4 and word[-1] == word[-2] and word[-1] not in "ls":
        word = word[:-1]
    return word.removesuffix("e") if len(word) > 3 else word


def tokens(text: str) -> list[str]:
    """The words of a text in order, as written; a hyphenated word is one."""
    return _WORD.findall(text)


def is_content(word: str) -> bool:
    """Recognises a word that says something about the subject: no stop word, three letters or more."""
    return len(word) > 2 and word.lower().replace("’", "'") not in STOP_WORDS


def content_stems(text: str) -> list[str]:
    return [stem(word) for word in tokens(text) if is_content(word)]


def task_terms(task: str) -> dict[str, str]:
    """Stem -> the word as the task first wrote it, in order; stop words, task verbs and file names left out."""
    prose = " ".join(piece for piece in task.split() if not _FILE_NAME.search(piece))
    terms: dict[str, str] = {}
    for word in tokens(prose):
        if is_content(word) and word.lower() not in TASK_WORDS:
            terms.setdefault(stem(word), word)
    return terms


def term_weights(task: str) -> dict[str, float]:
    """Stem -> how much it counts in ranking: 1, or less for words that the task writes only as part of a name."""
    plain: set[str] = set()
    for match in _WORD.finditer(task):
        if (
            match.group().islower()
            or match.group().isupper()
            or _SENTENCE_START.search(task[max(0, match.start() - 6) : match.start()])
        ):
            plain.add(stem(match.group()))
    return {key: 1.0 if key in plain or len(word) < 2 else _NAME_WEIGHT for key, word in task_terms(task).items()}


def vocabulary(texts: Iterable[str]) -> set[str]:
    """Every stem of the texts, stop words included, with hyphen parts and adjacent pairs joined (back up = backup)."""
    found: set[str] = set()
    for text in texts:
        words = tokens(text)
        found.update(map(stem, words))
        found.update(stem(part) for word in words for part in re.split(r"[-‑]", word))
        found.update(stem(left + right) for left, right in pairwise(words))
    return found


def phrases(words: list[str], task: str) -> list[str]:
    """Words that stand side by side in the task as one phrase: screen, reader -> screen reader."""
    joined: list[str] = []
    for word in words:
        if joined and re.search(rf"\b{re.escape(joined[-1])}\s+{re.escape(word)}\b", task):
            joined[-1] = f"{joined[-1]} {word}"
        else:
            joined.append(word)
    return joined


def missing_words(terms: dict[str, str], mentioned: set[str]) -> list[str]:
    """Task words, as written, that no text mentions in any form.

    Long words also count as mentioned when their first three fifths do (accessibility, accessible): a false gap
    costs more trust than a missed one.
    """
    shortened = {key: key[: max(5, -(-len(key) * 3 // 5))] for key in terms if len(key) >= 8}
    sizes = {len(short) for short in shortened.values()}  # and no other prefix: a "word" may be a line of base64
    prefixes = {word[:size] for word in mentioned for size in sizes}
    missing = []
    for key, word in terms.items():
        parts = [stem(part) for part in re.split(r"[-‑]", word)]
        near = shortened.get(key) in prefixes
        if key not in mentioned and not near and not (len(parts) > 1 and all(part in mentioned for part in parts)):
            missing.append(word)
    return missing

"""What the offline engine finds in the labelled document sets of `benchmarks/offline_sets/`, and whether it is right.

The real engine gives the page of the closing extract; everything is read from that page. A number finding is right when
all the places that it names belong to one labelled disagreement. A statement is false when a quotation does not stand in
the lines it cites, a word that was "not found" stands in a document, or anything is denied that no check of the engine
answers for. Run it over other sets with `python -m benchmarks.offline_sets FOLDER`.
"""

from __future__ import annotations

import json
import re
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.report import Figure, Table
from council.llm.base import Message, Source, TurnInfo
from council.llm.offline import offline_reply

SETS = Path(__file__).parent / "offline_sets"
_HELD_OUT = tuple(str(number) for number in range(147, 163))  # nothing is fitted to these
_CITED = re.compile(r"“((?:[^“”„]|„[^“”]*[“”])+)”( \[E\d+: ([^\]:]+):(\d+)(?:-(\d+))?\])?")
_NUMBERS = ("Figures that differ.", "Totals that do not add up.")
_DENIAL = re.compile(r"\b(?:no|not|never|none|nothing|nobody|neither)\b", re.IGNORECASE)
_ANSWERED_FOR = re.compile(
    r"None found by this check\.|that this check did not find|No line .*?shares enough words with the task|Named but not read"
    r"|Documents whose names differ only in numbers were not compared\."
    r"|\*Offline, extractive.*\*|Totals that do not add up|totals? that do(?:es)? not add up"
    r"|This engine reads English and German only.*|The task is in \w+ and .* may not be found\.|\*\*What this mode cannot do:.*"
)


@dataclass
class Score:
    """Of one set, or of all. `missed` and `wrong` are for whoever improves the rules."""

    labelled: int = 0
    found: int = 0
    findings: int = 0
    right: int = 0
    false: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    missed: list[str] = field(default_factory=list)


def labelled_documents(folder: Path) -> tuple[dict[str, str], dict[str, Any], tuple[Source, ...], TurnInfo]:
    """The documents, the labels, and both as the engine is asked."""
    paths = sorted(path for path in folder.iterdir() if path.name != "labels.json")
    texts = {path.name: path.read_text("utf-8") for path in paths}
    labels = json.loads((folder / "labels.json").read_text("utf-8"))
    sources = tuple(Source(f"E{i}", name, text) for i, (name, text) in enumerate(texts.items(), 1))
    return texts, labels, sources, TurnInfo("COORDINATOR", "synthesis", 1, 1, labels["task"])


def score(folder: Path) -> Score:
    """Reads the labels only after the engine has answered."""
    texts, labels, sources, info = labelled_documents(folder)
    page = offline_reply([Message("user", "documents", sources)], info)
    told = Score(labelled=len(labels["numbers"]), false=_false_statements(page, texts, labels))
    hit = set()
    for finding in _number_findings(page):
        places = [
            (path, int(first), int(last or first)) for _, cited, path, first, last in _CITED.findall(finding) if cited
        ]
        met = {i for i, label in enumerate(labels["numbers"]) if all(within(place, label) for place in places)}
        told.findings += 1
        told.right += bool(met)
        told.wrong += [] if met else [finding]
        hit |= met
    told.found = len(hit)
    told.missed = [label["about"] for i, label in enumerate(labels["numbers"]) if i not in hit]
    return told


def _number_findings(page: str) -> list[str]:
    return [
        line
        for section in page.split("\n\n**")
        if section.removeprefix("**").startswith(_NUMBERS)
        for line in section.split("\n")
        if line.startswith("- ")
    ]


def within(place: tuple[str, int, int], label: dict[str, Any]) -> bool:
    path, first, last = place
    named = [spot.rpartition(":") for spot in label["places"]]
    return any(file == path and first <= int(line) <= last for file, _, line in named)


def _false_statements(page: str, texts: dict[str, str], labels: dict[str, Any]) -> list[str]:
    """Quotations that stand elsewhere or nowhere, gaps that are none, denials, and the false statements of the labels."""
    false = []
    for quoted, cited, path, first, last in _CITED.findall(page):
        lines = texts[path].split("\n")[int(first) - 1 : int(last or first)] if cited else []
        if quoted not in " ".join(" ".join(line.strip().strip("|").strip() for line in lines).split()):
            false.append(f"not in the cited lines: {quoted}")
    for gaps in re.findall(r"did not find in the documents:\*\* (.*)", page):
        everything = " ".join(texts.values()).lower()
        words = re.findall(r"\*([^*]+)\*", gaps)
        false += [f"stands in a document: {word}" for word in words if word.lower() in everything]
    own = _ANSWERED_FOR.sub("", re.sub(r" \(columns: .*?\)(?= says|$)", "", _CITED.sub("", page), flags=re.MULTILINE))
    false += [f"denied: {line}" for line in own.split("\n") if _DENIAL.search(line)]
    return false + [f"labelled false: {each}" for each in labels["false"] if each.lower().rstrip(".") in own.lower()]


def total(scores: list[Score]) -> Score:
    """All sets as one."""
    whole = Score()
    for each in scores:
        whole.labelled += each.labelled
        whole.found += each.found
        whole.findings += each.findings
        whole.right += each.right
        whole.false += each.false
    return whole


def fitted_sets() -> list[Path]:
    """Those that the weights are fitted to."""
    return [path.parent for path in sorted(SETS.glob("*/labels.json")) if not path.parent.name.startswith(_HELD_OUT)]


def measure(root: Path = SETS) -> list[Table]:
    """Each set's recall, and the three bars over all of them; those that were held out stand apart."""
    folders = sorted(path.parent for path in root.glob("*/labels.json"))
    if root != SETS:
        return [_table(root.name, folders)]
    fitted = fitted_sets()
    return [_table("fitted", fitted), _table("held out", [folder for folder in folders if folder not in fitted])]


def _table(group: str, folders: list[Path]) -> Table:
    scores = {folder.name: score(folder) for folder in folders}
    for name, each in scores.items():
        for kind, lines in (("wrong", each.wrong), ("false", each.false), ("missed", each.missed)):
            for line in lines:
                print(f"{name}: {kind}: {line}", file=sys.stderr)
    whole = total(list(scores.values()))
    figures = [Figure(f"{name}: found of {each.labelled}", each.found, "") for name, each in scores.items()]
    wrong = whole.findings - whole.right
    figures += [
        Figure("number findings", whole.findings, ""),
        Figure("… of them wrong, share (1 - precision)", wrong / max(1, whole.findings), "", bar=0.1),
        Figure(
            "labelled disagreements missed, share (1 - recall)", 1 - whole.found / max(1, whole.labelled), "", bar=0.5
        ),
        Figure("false statements", len(whole.false), "", bar=0, exactly=True),
    ]
    how = f"{len(scores)} sets, scored on the page of the closing extract. `benchmarks/offline_sets/README.md` tells"
    return Table(f"The offline engine on labelled documents: {group}", f"{how} what they prove.", figures=figures)


if __name__ == "__main__":
    from benchmarks.report import render

    print(render(measure(Path(sys.argv[1]) if len(sys.argv) > 1 else SETS)))

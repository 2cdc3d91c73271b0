"""The work of a parser on nasty text of size n and 10 n, measured in this process alone: `python -m tests.work PARSER`.

Prints `piece ratio` for each piece that takes more than LIMIT times as long at ten times the size.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from council.agents.manifest import parse_manifest
from council.app import commands_of
from council.commands.file_formats import NotACommand
from council.commands.parsing import parse_command
from council.commands.recurring import parse_recurring
from council.deliberation.names import Names
from council.deliberation.quotations.lookup import Quotations
from council.deliberation.quotations.passages import Passage
from council.deliberation.stance import Stance
from council.desk.all_systems import house
from council.errors import CouncilError
from council.knowledge.cortex.tantivy_index import searchable
from council.llm.extraction import extract_block
from council.llm.offline.text import holds_request
from council.markup import without_thoughts
from council.redaction import Redactor
from council.safety.echoes import OutsideTexts
from council.safety.guardrails import check
from council.safety.markdown import for_markdown
from council.safety.python_code import judge_python
from council.safety.untrusted import clean, inert
from council.settings.layers import read_dotenv
from council.storage.paths import PathRules
from council.tools.tokens import parse
from council.turns.closing_block import parse_block
from council.turns.streaming import Hearing

COMMANDS = commands_of(house())
LIMIT = 15
ENOUGH_S = 0.002  # forty times what the clock of a process tells apart
TRIES = 5

PIECES = {
    "stars": "*", "tokens": "[ORCHESTRATOR_REQUEST: READ_FILE(", "parentheses": "(", "brackets": "[", "braces": '{"a":',
    "quotation marks": '"', "backslashes": "\\", "backticks": "`", "fences": "```\n", "list items": "- a: ", "anchors": "&a ",
    "aliases": "- *a\n", "sexagesimals": "9:", "keys": "k#: 1\n", "assignments": "A#=b c\n", "quoted": "A='b\n", "tags": "<a ",
    "pipes": "|-", "accents": "\u0301a", "percents": "%4", "entities": "&#4", "secrets": "api_key=", "keys of issuers": "re_.sl.",
    "spaced brackets": "[ ", "ticks": "".join("`" * length + "a" for length in range(60)), "images": "![", "targets": "](a",
    "titles": '](a "', "quote marks": "> ", "cells": "`a|", "marks": "\u0301\u0316", "spaces": "      ", "escapes": "\x1b]",
    "prefixes": "sk-xoxb-", "bearers": "Bearer a",
    "base64": "QUJD", "sentences": "if you are ", "thoughts": "<think>", "minutes": "1,", "steps": "*/", "json keys": '"k#": 1,',
    "cited figures": "[E1: a.md:3-9] 17 GB ", "quotations": "“The archive of 7” [E1: a.md:7] ", "letters in quotes": '"a b c" ',
    "rules": "---\n", "line breaks": "\n", "odd spaces": " \n\t", "globs": "**/a?", "figures": "1,234.5 ", "uuids": "0a1b2c3d-",
    "logins": "login a ", "emphasis": "**a", "tags that close": "</details>", "addresses": "http://a",
    "digits": "9", "commas": "1-2,",
}  # fmt: skip


def command(name: str) -> Callable[[str], object]:
    def read(text: str) -> object:
        return parse_command(COMMANDS, name, text.encode())

    return read


def whole(before: str, after: str, read: Callable[[str], object]) -> Callable[[str], object]:
    return lambda text: read(f"{before}{text}{after}")


def dotenv(text: str) -> object:
    with tempfile.NamedTemporaryFile("w", suffix=".env") as file:
        file.write(text)
        file.flush()
        return read_dotenv(Path(file.name))


def hearing(text: str) -> object:
    heard = Hearing("AUDITOR", 1, lambda hearing, piece: None)
    for at in range(0, len(text), 4):  # as tokens come
        heard(text[at : at + 4])
    return heard.end()


def quotations(text: str) -> object:
    lines = [f"The archive of {number} grows by {number} GB a month, says “the plan {number}”." for number in range(50)]
    return Quotations([Passage("E1", "a.md", 1, "\n".join(lines))], ["E1"]).check(text)


def glob(text: str) -> object:
    return PathRules(deny=(), allow=(text,)).check("a/" * 500 + "x")


def outside(text: str) -> None:
    texts = OutsideTexts()
    texts.add(text)
    texts.read()


# What is read, and the most characters that it is given.
PARSERS: dict[str, tuple[Callable[[str], object], int]] = {
    "json": (whole('{"task_description": "x", ', "}", command("x.json")), 262_000),
    "json text": (command("x.json"), 262_000),
    "yaml": (whole("task_description: x\n", "", command("x.yaml")), 262_000),
    "markdown command": (whole("---\noutput_artifact_path: a.md\n---\n", "", command("x.md")), 262_000),
    "front matter": (whole("---\n", "\n---\nDo it.\n", command("x.md")), 262_000),
    "recurring": (lambda text: parse_recurring(COMMANDS, "x.yaml", f"schedule: '{text}'\n".encode()), 262_000),
    "cron": (lambda text: parse_recurring(COMMANDS, "x.yaml", f"cron: {text} * * * *\n".encode()), 262_000),
    "globs": (glob, 100_000),
    "tokens": (parse, 1_000_000),
    "markdown": (for_markdown, 1_000_000),
    "inert": (lambda text: inert(clean(text)), 1_000_000),
    "outside": (outside, 1_000_000),
    "personas": (
        lambda text: parse_manifest("x.md", f"---\nid: x\nrole: XY\npurpose: Work.\n{text}\n---\nBe.\n"),
        1_000_000,
    ),
    "dotenv": (dotenv, 128_000),
    "blocks": (lambda text: extract_block(text, ("position",)), 1_000_000),
    "schemas": (lambda text: parse_block(f"x\n```council\n{text}\n```", Stance, complete=True), 1_000_000),
    "thoughts": (without_thoughts, 1_000_000),
    "redaction": (Redactor().redact, 1_000_000),
    "guardrails": (lambda text: check("tool_result", text), 1_000_000),
    "code": (judge_python, 64_000),
    "quotations": (quotations, 100_000),
    "hearing": (hearing, 300_000),
    "hearing a fence": (whole("Here it is:\n```", "", hearing), 300_000),
    "search": (searchable, 262_000),
    "words of agents": (Names({"COORDINATOR": "A", "RISK_OFFICER": "B"}).text, 262_000),
    "requests held": (holds_request, 262_000),
}


def nasty(piece: str, size: int) -> str:
    if "#" in piece and piece != "&#4":
        return "".join(piece.replace("#", str(number)) for number in range(max(1, size // (len(piece) + 4))))
    return (piece * (size // len(piece) + 1))[:size]


def work_s(read: Callable[[str], object], text: str) -> float:
    started = time.process_time()
    with suppress(CouncilError, NotACommand, ValueError):
        read(text)
    return time.process_time() - started


def growth(read: Callable[[str], object], piece: str, most: int) -> float:
    """How many times the work ten times the size takes; 0 where the largest text that is read takes no time at all."""
    size = 500
    while size * 10 <= most:
        few = nasty(piece, size)
        if (once_s := work_s(read, few)) >= ENOUGH_S:
            many = nasty(piece, 10 * size)
            ratio = work_s(read, many) / once_s
            if ratio <= LIMIT:
                return ratio
            ratios = (
                min(work_s(read, many) for _ in range(TRIES)) / min(work_s(read, few) for _ in range(TRIES))
                for _ in range(3)
            )
            return next((again for again in ratios if again <= LIMIT), ratio)
        size *= 2
    return 0.0


def main() -> None:
    read, most = PARSERS[sys.argv[1]]
    for name, piece in PIECES.items():
        ratio = growth(read, piece, most)
        if ratio > LIMIT:
            print(f"{name}: {ratio:.1f} times")


if __name__ == "__main__":
    main()

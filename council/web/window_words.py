"""Advice in the window's words: errors and notes name commands, and a person at a page has a button or a page instead.

A command that no page stands for remains as it is: whoever reads of it needs the machine.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from council.reports.agent_markdown import AgentMarkdown

_COMMAND = re.compile(r"`council ([a-z][^`\n]*)`")
_HERE = {  # by the beginning of a command: what stands for it. The first that fits
    r"retry \S+ --from plan": "Retry from the plan on the run’s page",
    r"(resume|retry) \S+ --": "",
    r"plans (confirm|apply|undo|reject)": "{0} on its card",
    r"plans show": "its page under Plans",
    r"plans": "the page Plans",
    r"(cancel|resume|retry)": "{0} on the run’s page",
    r"answer": "the question’s card on the page Now",
    r"status": "the page Now",
    r"show|explain|report": "the run’s page under Runs",
    r"replay": "Replay on the run’s page",
    r"runs": "the search on the page Runs",
    r"submit|validate": "the page New command",
    r"ask": "the page Ask",
    r"specialists list|specialists stats": "the page Specialists",
    r"specialists (promote|demote|fork|deprecate)": "{0} on its page under Specialists",
    r"specialists (show|audit)": "its page under Specialists",
    r"vault set \S+ --role": "its field on the page Specialists",
    r"world": "the page World",
    r"workspace orgs add": "New organization on the page Workspace",
    r"workspace notes unlock": "the note’s page",
    r"workspace": "the page Workspace",
    r"agents list": "the page House, Agents",
    r"cortex query": "the page House, Search",
    r"audit (verify|tail)": "the page House, Audit",
    r"doctor": "the page House, Doctor",
    r"config show": "the page House, Settings",
}
_FOR = re.compile(r" --user \S+")
_WORD = re.compile(r"[a-z]+(?=[ ,’'])")  # no path, no name of a setting
_OWNER = re.compile(r"set `user: ([^`]+)`, or `--user [^`]+` behind `council plans`")


def word_filters() -> dict[str, Callable[[Any], str]]:
    """The filters by which every template of the window says an error, a note or advice: their code spans become code."""
    return {"worded": in_the_window, "sentence": sentence, "inline": AgentMarkdown({}).inline}


def in_the_window(text: object) -> str:
    """The same advice for who reads it on a page."""
    return _COMMAND.sub(_here, _OWNER.sub(r"\1 alone decides it", str(text)))


def sentence(text: object) -> str:
    """The same advice as a sentence of its own, from its capital letter to its full stop."""
    told = in_the_window(text)
    begun = f"{told[0].upper()}{told[1:]}" if _WORD.match(told) else told
    return begun if begun.endswith((".", "!", "?")) else f"{begun}."


def _here(command: re.Match[str]) -> str:
    asked = _FOR.sub("", command[1])
    for beginning, words in _HERE.items():
        if found := re.match(beginning, asked):
            told = words.format(*(each.capitalize() for each in found.groups())) or command[0]
            is_first = command.string[: command.start()].rstrip(" *(").endswith((".", "!", "?", "\n"))
            return f"{told[0].upper()}{told[1:]}" if is_first else told
    return command[0]

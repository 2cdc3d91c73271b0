"""The daemon's terminal: lines for a person, in the original's manner, or one JSON object per line for a program."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from typing import Any, TextIO

from council.daemon.speech import Speech
from council.events import Event
from council.ids import Clock, readable_json, timestamp
from council.redaction import Redactor
from council.safety.untrusted import clean, plain_line

_MAX_SHOWN_CHARS = 300
_SPEECH_COLUMNS = 100


class _Terminal:
    """A stream that somebody may stop reading: then it falls silent, and the run goes on."""

    _stream: TextIO
    _gone = False

    def _show(self, line: str, *, end: str = "\n") -> None:
        if self._gone:
            return
        try:
            print(line.encode("utf-8", "backslashreplace").decode("utf-8"), end=end, file=self._stream, flush=True)
        except BrokenPipeError:
            self._gone = True
            os.dup2(os.open(os.devnull, os.O_WRONLY), self._stream.fileno())  # what is buffered goes nowhere, silently


class JsonLines(_Terminal):
    """Every event as one JSON line with `time`, `event`, `run_id` and its data."""

    def __init__(self, stream: TextIO, clock: Clock, redactor: Redactor) -> None:
        self._stream = stream
        self._clock = clock
        self._redactor = redactor

    def __call__(self, event: Event) -> None:
        if event.kind == "text":
            return  # pieces are for people
        line: dict[str, Any] = {"time": timestamp(self._clock.now()), "event": event.kind}
        if event.run_id:
            line["run_id"] = event.run_id
        text = readable_json({**line, **event.data})
        self._show(self._redactor.redact(text))


class HumanLines(_Terminal):
    """One plain line per event that a person cares about; on a terminal also what an agent says while it says it. Where
    several speak at once, the one that began first is heard to its end."""

    def __init__(self, stream: TextIO, redactor: Redactor) -> None:
        self._stream = stream
        self._redactor = redactor
        self._shows_speech = stream.isatty()
        self._speaker: tuple[str, str] | None = None  # run and role of the open line
        self._speech = Speech(redactor)
        self._column = 0

    def __call__(self, event: Event) -> None:
        if event.kind == "text":
            self._hear((event.run_id, event.data["role"]), event.data["text"])
            return
        line = event_line(event.kind, event.data, event.run_id)
        if line:
            self._break_off()
            self._show(self._redactor.redact(line))

    def _hear(self, speaker: tuple[str, str], piece: str | None) -> None:
        if not self._shows_speech or self._speaker not in (None, speaker):
            return
        if piece is None:
            self._break_off()
            self._show("  ~  The reply broke off; it begins again.")
            return
        self._speaker = speaker
        text = self._speech.hear(clean(piece))
        for word in re.findall(r"\n|[^\s]+[^\S\n]*|[^\S\n]+", text):
            self._say(word)

    def _say(self, word: str) -> None:
        if word == "\n" or self._column + len(word.rstrip()) > _SPEECH_COLUMNS:
            self._show("")
            self._column = 0
        if word == "\n":
            return
        self._show(word if self._column else f"  |  {word}", end="")
        self._column += len(word)

    def _break_off(self) -> None:
        if self._column:
            self._show("")
        self._speaker, self._column = None, 0
        self._speech = Speech(self._redactor)


def event_line(kind: str, data: dict[str, Any], run_id: str) -> str:
    """What a person is told of an event; empty for those that only programs follow."""
    return _LINES.get(kind, _silent)(data, run_id)


def _silent(data: dict[str, Any], run_id: str) -> str:
    return ""


def _shown(value: object) -> str:
    return plain_line(str(value), _MAX_SHOWN_CHARS)


def _queued(data: dict[str, Any], run_id: str) -> str:
    return f"[!] Command file detected: commands/{_shown(data['file'])} is run {run_id}."


def _started(data: dict[str, Any], run_id: str) -> str:
    again = f" (attempt {data['attempt']})" if data.get("attempt", 1) > 1 else ""
    return f"\n▶  Executing task: {_shown(data['title'])}{again}"


def _turn_ended(data: dict[str, Any], run_id: str) -> str:
    if data["failure"]:
        return f"  x  {data['role']} did not answer: {_shown(data['failure'])}"
    return f"  <- {data['role']} to Orchestrator."


def _request(data: dict[str, Any], run_id: str) -> str:
    if data["ok"]:
        return f"[ORCHESTRATOR] {data['role']} asked {_shown(data['request'])}: {_shown(data['title'])}"
    return f"[ORCHESTRATOR] {data['role']} asked {_shown(data['request'])}: refused, {_shown(data['error'])}"


def _ended(data: dict[str, Any], run_id: str) -> str:
    notes = "".join(f"\n    {_shown(note)}" for note in data["notes"])
    if data["status"] in ("failed", "cancelled"):
        error = data["error"] or {"message": "cancelled", "fix": ""}
        fix = f"\n    Fix: {_shown(error['fix'])}" if error["fix"] else ""
        where = f"\n    Its page is {_shown(data['artifact'])}" if data["artifact"] else ""
        return f"[{data['status'].upper()}] {_shown(error['message'])}{fix}{where}"
    word = "SUCCESS" if data["status"] == "succeeded" else data["status"].upper()
    left = f"Artifact saved to {_shown(data['artifact'])}" if data["artifact"] else _shown(data["title"])
    return f"[{word}] {left}{notes}"


def _missed(data: dict[str, Any], run_id: str) -> str:
    more = " or more" if data["capped"] else ""
    return (
        f"[!] recurring/{_shown(data['file'])} was missed {data['count']}{more} times since {data['first']}; "
        f"only the latest occurrence, {data['latest']}, counts."
    )


def _pruned(data: dict[str, Any], run_id: str) -> str:
    count = len(data["runs"])
    settings = ", ".join(_shown(setting) for setting in data["settings"])
    return f"[!] Pruned {count} ended run{'s' if count != 1 else ''} ({data['bytes']:,} bytes) by {settings}."


_LINES: dict[str, Callable[[dict[str, Any], str], str]] = {
    "daemon_started": lambda data, run_id: (
        f"Council {data['version']}, model {_shown(data['model'])}, pid {data['pid']}."
    ),
    "idle": lambda data, run_id: f"--- Orchestrator idle. Monitoring for commands in {_shown(data['folder'])} ---",
    "command_refused": lambda data, run_id: (
        f"[ERROR] {_shown(data['file'])} could not become a run: {_shown(data['error'])}\n"
        f"    Fix: {_shown(data['fix'])}\n    Moved to {_shown(data['moved_to'])}, with a note beside it."
    ),
    "command_answered": lambda data, run_id: (
        f"[=] {_shown(data['file'])} has the id of run {run_id}, which already answered it."
    ),
    "command_waits_for_id": lambda data, run_id: (
        f"[=] {_shown(data['file'])} has the id of run {run_id}, which goes on: it waits for that answer."
    ),
    "command_changed": lambda data, run_id: (
        f"[!] commands/{_shown(data['file'])} changed meanwhile; it is a new command."
    ),
    "control": lambda data, run_id: f"[!] {_shown(data['type'])}: run {run_id}.",
    "run_queued": _queued,
    "run_recovered": lambda data, run_id: (
        f"[+] Run {run_id} is taken up again; {data['steps']} steps are already done: {_shown(data['title'])}"
    ),
    "run_damaged": lambda data, run_id: f"[ERROR] {_shown(data['error'])}\n    Fix: {_shown(data['fix'])}",
    "run_started": _started,
    "round": lambda data, run_id: f"\n--- ROUND {data['round']} of {data['max_rounds']} ---",
    "turn_started": lambda data, run_id: f"  -> Orchestrator to {data['role']}...",
    "turn_ended": _turn_ended,
    "request": _request,
    "rounds_end": lambda data, run_id: f"\n--- ROUNDS END: {_shown(data['reason'])} ---",
    "synthesis": lambda data, run_id: f"\n--- CLOSING: {data['role']} ---",
    "model_retry": lambda data, run_id: (
        f"  ~  {_shown(data['error'])} Trying again in {data['wait_s']:.0f} s (attempt {data['attempt']})."
    ),
    "run_waiting": lambda data, run_id: (
        f"[WAITING] Run {run_id} waits {data['seconds']:.0f} s for {data['reason']}: {_shown(data['error'])}"
    ),
    "run_handed_back": lambda data, run_id: f"[!] Run {run_id} is handed back; it goes on at the next start.",
    "run_ended": _ended,
    "runs_pruned": _pruned,
    "schedule_seen": lambda data, run_id: (
        f"[!] recurring/{_shown(data['file'])} is scheduled: {_shown(data['schedule'])}."
    ),
    "schedule_due": lambda data, run_id: (
        f"[!] recurring/{_shown(data['file'])} is due: dropped {_shown(data['dropped'])}."
    ),
    "schedule_missed": _missed,
    "schedule_skipped": lambda data, run_id: f"[!] Skipped {_shown(data['id'])}: {_shown(data['reason'])}.",
    "schedule_refused": lambda data, run_id: (
        f"[ERROR] recurring/{_shown(data['file'])} is not scheduled: {_shown(data['error'])}\n"
        f"    Fix: {_shown(data['fix'])}\n    A note is in {_shown(data['note'])}"
    ),
    "stopping": lambda data, run_id: "\n--- Stopping: the turns in flight end first; again to stop at once. ---",
}

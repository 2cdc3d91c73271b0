"""The daemon's terminal: lines for a person, in the original's manner, or one JSON object per line for a program."""

from __future__ import annotations

import os
import re
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
    """One plain line per event that a person cares about; on a terminal also an agent's words while they are said.

    Of several speakers, the one that began first is heard to its end.
    """

    def __init__(self, stream: TextIO, redactor: Redactor) -> None:
        self._stream = stream
        self._redactor = redactor
        self._shows_speech = stream.isatty()
        self._speaker: tuple[str, str] | None = None  # run and role of the open line
        self._speech = Speech(redactor)
        self._column = 0

    def __call__(self, event: Event) -> None:
        if event.kind != "text":
            line = event_line(event.kind, event.data, event.run_id)
            if line:
                self._break_off()
                self._show(self._redactor.redact(line))
            return
        speaker, piece = (event.run_id, event.data["role"]), event.data["text"]
        if not self._shows_speech or self._speaker not in (None, speaker):
            return
        if piece is None:
            self._break_off()
            self._show("  ~  The reply broke off; it begins again.")
            return
        self._speaker = speaker
        for word in re.findall(r"\n|[^\s]+[^\S\n]*|[^\S\n]+", self._speech.hear(clean(piece))):
            if word == "\n" or self._column + len(word.rstrip()) > _SPEECH_COLUMNS:
                self._show("")
                self._column = 0
            if word != "\n":
                self._show(word if self._column else f"  |  {word}", end="")
                self._column += len(word)

    def _break_off(self) -> None:
        if self._column:
            self._show("")
        self._speaker, self._column = None, 0
        self._speech = Speech(self._redactor)


def event_line(kind: str, data: dict[str, Any], run_id: str) -> str:
    """The line that tells a person of an event; empty for those that only programs follow."""

    def shown(key: str) -> str:
        return _shown(data[key])

    match kind:
        case "daemon_started":
            return f"Council {data['version']}, model {shown('model')}, pid {data['pid']}."
        case "idle":
            return f"--- Orchestrator idle. Monitoring for commands in {shown('folder')} ---"
        case "stopping":
            return "\n--- Stopping: the turns in flight end first; again to stop at once. ---"
        case "command_refused":
            moved = f"Moved to {shown('moved_to')}, with a note beside it."
            return f"[ERROR] {shown('file')} could not become a run: {shown('error')}\n    Fix: {shown('fix')}\n    {moved}"
        case "command_answered":
            return f"[=] {shown('file')} has the id of run {run_id}, which already answered it."
        case "command_waits_for_id":
            return f"[=] {shown('file')} has the id of run {run_id}, which goes on: it waits for that answer."
        case "command_waiting":
            return f"[WAITING] commands/{shown('file')} waits for {shown('reason')}: {shown('error')}"
        case "command_changed":
            return f"[!] commands/{shown('file')} changed meanwhile; it is a new command."
        case "control":
            return f"[!] {shown('type')}: run {run_id}." if run_id else f"[!] {shown('title')}."
        case "companion_failed":
            return f"[ERROR] {shown('name')}: {shown('reason')}; it is started again in {data['again_s']:.0f} s."
        case "companion_recovered":
            return f"[+] {shown('name')} runs again."
        case "run_queued":
            return f"[!] Command file detected: commands/{shown('file')} is run {run_id}."
        case "run_recovered":
            return f"[+] Run {run_id} is taken up again; {data['steps']} steps are already done: {shown('title')}"
        case "run_damaged":
            return f"[ERROR] {shown('error')}\n    Fix: {shown('fix')}"
        case "run_started":
            again = f" (attempt {data['attempt']})" if data.get("attempt", 1) > 1 else ""
            return f"\n▶  Executing task: {shown('title')}{again}"
        case "round":
            return f"\n--- ROUND {data['round']} of {data['max_rounds']} ---"
        case "turn_started":
            return f"  -> Orchestrator to {data['role']}..."
        case "turn_ended" if data["failure"]:
            return f"  x  {data['role']} did not answer: {shown('failure')}"
        case "turn_ended":
            return f"  <- {data['role']} to Orchestrator."
        case "request":
            outcome = shown("title") if data["ok"] else f"refused, {shown('error')}"
            return f"[ORCHESTRATOR] {data['role']} asked {shown('request')}: {outcome}"
        case "rounds_end":
            return f"\n--- ROUNDS END: {shown('reason')} ---"
        case "synthesis":
            return f"\n--- CLOSING: {data['role']} ---"
        case "model_retry":
            return f"  ~  {shown('error')} Trying again in {data['wait_s']:.0f} s (attempt {data['attempt']})."
        case "run_waiting":
            return f"[WAITING] Run {run_id} waits {data['seconds']:.0f} s for {shown('reason')}: {shown('error')}"
        case "run_handed_back":
            return f"[!] Run {run_id} is handed back; it goes on at the next start."
        case "run_ended" if data["status"] in ("failed", "cancelled"):
            error = data["error"] or {"message": "cancelled", "fix": ""}
            fix = f"\n    Fix: {_shown(error['fix'])}" if error["fix"] else ""
            page = f"\n    Its page is {shown('artifact')}" if data["artifact"] else ""
            return f"[{data['status'].upper()}] {_shown(error['message'])}{fix}{page}"
        case "run_ended":
            word = "SUCCESS" if data["status"] == "succeeded" else data["status"].upper()
            left = f"Artifact saved to {shown('artifact')}" if data["artifact"] else shown("title")
            return "\n    ".join([f"[{word}] {left}", *map(_shown, data["notes"])])
        case "runs_pruned":
            count = len(data["runs"])
            by = ", ".join(_shown(setting) for setting in data["settings"])
            return f"[!] Pruned {count} ended run{'s' if count != 1 else ''} ({data['bytes']:,} bytes) by {by}."
        case "home_brought_over":
            unread = f"; not readable: {', '.join(data['unread'])}" if data["unread"] else ""
            runs = f"runs {data['runs']}, unfinished {data['unfinished']}"
            return f"--- Brought over from an older version: {runs}{unread} ---"
        case "schedule_seen":
            return f"[!] recurring/{shown('file')} is scheduled: {shown('schedule')}."
        case "schedule_due":
            return f"[!] recurring/{shown('file')} is due: dropped {shown('dropped')}."
        case "schedule_missed":
            times = f"{data['count']}{' or more' if data['capped'] else ''} times since {data['first']}"
            counts = f"only the latest occurrence, {data['latest']}, counts"
            return f"[!] recurring/{shown('file')} was missed {times}; {counts}."
        case "schedule_skipped":
            return f"[!] Skipped {shown('id')}: {shown('reason')}."
        case "schedule_refused":
            refused = f"[ERROR] recurring/{shown('file')} is not scheduled: {shown('error')}"
            return f"{refused}\n    Fix: {shown('fix')}\n    A note is in {shown('note')}"
        case _:
            return ""


def _shown(value: object) -> str:
    return plain_line(str(value), _MAX_SHOWN_CHARS)

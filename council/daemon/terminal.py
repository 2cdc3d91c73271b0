"""The daemon's terminal: lines for a person, in the original's manner, or one JSON object per line for a program."""

from __future__ import annotations

import contextlib
import logging
import os
import re
from typing import TextIO

from council import events
from council.events import Event, EventLines, SpeechPiece
from council.ids import Clock, timestamp
from council.logs import at_time
from council.redaction import Redactor
from council.safety.untrusted import plain_line

log = logging.getLogger(__name__)

_MAX_SHOWN_CHARS = 300
_SPEECH_COLUMNS = 100


class _Terminal:
    """A stream that somebody may stop reading, or a file on a full disk: then it falls silent, and the run goes on."""

    _stream: TextIO
    _gone = False

    def _show(self, line: str, *, end: str = "\n") -> None:
        if self._gone:
            return
        try:
            self._stream.write(line.encode("utf-8", "backslashreplace").decode("utf-8") + end)
            self._stream.flush()
        except (OSError, ValueError) as error:  # ValueError: it is closed
            self._gone = True
            if not isinstance(error, BrokenPipeError):
                log.warning("events are told here no more: %s", getattr(error, "strerror", None) or error)
            with contextlib.suppress(OSError, ValueError):  # what is buffered goes nowhere, silently
                os.dup2(os.open(os.devnull, os.O_WRONLY), self._stream.fileno())


class JsonLines(_Terminal):
    """Every event as one JSON line with `time`, `event`, `run_id` and its data."""

    def __init__(self, stream: TextIO, clock: Clock, lines: EventLines) -> None:
        self._stream = stream
        self._clock = clock
        self._lines = lines

    def __call__(self, event: Event) -> None:
        if not isinstance(event, SpeechPiece):  # pieces are for people
            self._show(at_time(timestamp(self._clock.now()), self._lines.of(event)))


class HumanLines(_Terminal):
    """One plain line per event that a person cares about; on a terminal also an agent's words while they are said. Of
    several speakers, the one that began first is heard to its end."""

    def __init__(self, stream: TextIO, redactor: Redactor) -> None:
        self._stream = stream
        self._redactor = redactor
        self._shows_speech = stream.isatty()
        self._speaker: tuple[str, str] | None = None  # run and role of the open line
        self._column = 0

    def __call__(self, event: Event) -> None:
        if not isinstance(event, SpeechPiece):
            line = event_line(event)
            if line:
                self._break_off()
                self._show(self._redactor.redact(line))
            return
        speaker, piece = (event.run_id, event.role), event.text
        if not self._shows_speech or self._speaker not in (None, speaker):
            return
        if piece is None:
            self._break_off()
            self._show("  ~  The reply broke off; it starts again.")
            return
        self._speaker = speaker
        for word in re.findall(r"\n|[^\s]+[^\S\n]*|[^\S\n]+", piece):
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


# Events that are always told in the same words; their texts come as one plain line each.
_LINES: dict[type[Event], str] = {
    events.DaemonStart: "Council {version}, model {model}, pid {pid}.",
    events.IdleInbox: "--- Orchestrator idle. Monitoring for commands in {folder} ---",
    events.DaemonStop: "\n--- Stopping after the current turns. Press Ctrl-C again to stop at once. ---",
    events.CommandRefusal: "[ERROR] {file} could not become a run: {error}\n    Fix: {fix}\n"
    "    Moved to {moved_to}, with a note beside it.",
    events.CommandAnswer: "[=] {file} has the id of run {run_id}, which already answered it.",
    events.CommandWait: "[=] {file} has the id of run {run_id}, which has not ended: it waits for that answer.",
    events.CommandDelay: "[WAITING] commands/{file} waits for {reason}: {error}",
    events.CommandChange: "[!] commands/{file} has changed; it is a new command.",
    events.CompanionFailure: "[ERROR] {name}: {reason}; it is started again in {again_s:.0f} s.",
    events.CompanionRecovery: "[+] {name} runs again.",
    events.ConductorStart: "{note}",
    events.WorldChange: "[!] {note}",
    events.WorldRound: "  ~  World round {round}: {actions} actions; {population} live.",
    events.RunAdmission: "[!] Command file detected: commands/{file} is now run {run_id}.",
    events.RunRecovery: "[+] Run {run_id} continues; {steps} steps are already done: {title}",
    events.RoundStart: "\n--- ROUND {round} of {max_rounds} ---",
    events.TurnStart: "  -> Orchestrator to {role}...",
    events.EndOfRounds: "\n--- ROUNDS END: {reason} ---",
    events.SynthesisStart: "\n--- CLOSING: {role} ---",
    events.ModelRetry: "  ~  {error} Trying again in {wait_s:.0f} s (attempt {attempt}).",
    events.RunWait: "[WAITING] Run {run_id} waits {seconds:.0f} s for {reason}: {error}",
    events.RunReturn: "[!] Run {run_id} is interrupted; it continues at the next start.",
    events.ScheduleSighting: "[!] recurring/{file} is scheduled: {schedule}.",
    events.ScheduleDrop: "[!] recurring/{file} is due: dropped {dropped}.",
    events.ScheduleSkip: "[!] Skipped {id}: {reason}.",
    events.ScheduleRefusal: "[ERROR] recurring/{file} is not scheduled: {error}\n    Fix: {fix}\n    A note is in {note}",
}


def event_line(event: Event) -> str:
    """The line that tells a person of an event; empty for those that only programs follow."""
    line = _LINES.get(type(event))
    if line is not None:
        values = {name: _shown(value) if isinstance(value, str) else value for name, value in event.values().items()}
        return line.format(run_id=event.run_id, **values)
    match event:
        case events.ControlAct():
            return f"[!] {_shown(event.type)}: run {event.run_id}." if event.run_id else f"[!] {_shown(event.title)}."
        case events.RunStart():
            again = f" (attempt {event.attempt})" if event.attempt > 1 else ""
            return f"\n▶  Executing task: {_shown(event.title)}{again}"
        case events.TurnEnd() if event.failure:
            return f"  x  {event.role} did not answer: {_shown(event.failure)}"
        case events.TurnEnd():
            return f"  <- {event.role} to Orchestrator."
        case events.ToolRequest():
            outcome = _shown(event.title) if event.ok else f"refused, {_shown(event.error)}"
            return f"[ORCHESTRATOR] {event.role} asked {_shown(event.request)}: {outcome}"
        case events.RunEnd(status="failed" | "cancelled"):
            fix = f"\n    Fix: {_shown(event.error.fix)}" if event.error and event.error.fix else ""
            page = f"\n    Its page is {_shown(event.artifact)}" if event.artifact else ""
            said = event.error.message if event.error else "cancelled"
            return f"[{event.status.upper()}] {_shown(said)}{fix}{page}"
        case events.RunEnd():
            word = "SUCCESS" if event.status == "succeeded" else event.status.upper()
            left = f"Artifact saved to {_shown(event.artifact)}" if event.artifact else _shown(event.title)
            return "\n    ".join([f"[{word}] {left}", *map(_shown, event.notes)])
        case events.Pruning():
            count = len(event.runs)
            by = ", ".join(map(_shown, event.settings))
            return f"[!] Pruned {count} ended run{'s' if count != 1 else ''} ({event.bytes:,} bytes) by {by}."
        case events.HomeImport():
            unread = f"; not readable: {', '.join(event.unread)}" if event.unread else ""
            runs = f"runs {event.runs}, unfinished {event.unfinished}"
            return f"--- Converted from an older version: {runs}{unread} ---"
        case events.ScheduleMiss():
            times = f"{event.count}{' or more' if event.capped else ''} times since {event.first}"
            counts = f"only the latest occurrence, {event.latest}, counts"
            return f"[!] recurring/{_shown(event.file)} was missed {times}; {counts}."
        case _:
            return ""


def _shown(text: str) -> str:
    return plain_line(text, _MAX_SHOWN_CHARS)

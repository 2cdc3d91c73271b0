"""`council ask` and `council answer`: a conversation with the conductor."""

from __future__ import annotations

import sys
from typing import Annotated, Any

import msgspec
import typer

from council.cli.context import AsJson, CliState, Timeout, User, print_json, state
from council.cli.daemon import serve
from council.cli.run_control import print_answer, told_status
from council.cli.waiting import require_own_model
from council.desk.ask_and_wait import AskReply, ask_and_wait
from council.desk.desk import Desk
from council.desk.run_lookup import answer_in, find_for, warnings_in
from council.errors import (
    EXIT_INTERRUPTED,
    EXIT_OK,
    EXIT_REFUSED,
    EXIT_WAITING,
    STATUS_EXIT,
    CommandInvalid,
    GuardrailBlocked,
    UsageError,
)
from council.events import Event, SpeechPiece
from council.markup import without_front_matter
from council.settings.home import path_in_home
from council.storage.files import FileLock

_Model = Annotated[str | None, typer.Option(help="Without a daemon: the model to use.")]


def ask(
    ctx: typer.Context,
    request: Annotated[str, typer.Argument(help="What you want, in your own words. `@name` asks one agent.")] = "",
    files: Annotated[list[str] | None, typer.Option("--file", "-f", help="A file for the request; repeatable.")] = None,
    conversation: Annotated[str, typer.Option(help="The conversation. Default: your last one.")] = "",
    new: Annotated[bool, typer.Option("--new", help="Begin a new conversation.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show how it would be routed, and ask no agent.")] = False,
    end: Annotated[bool, typer.Option("--end", help="End the conversation: what it remembers is deleted.")] = False,
    project: Annotated[str, typer.Option(help="The project that the request is about.")] = "",
    user: User = "",
    timeout_s: Timeout = 3600.0,
    model: _Model = None,
    as_json: AsJson = False,
) -> None:
    cli = state(ctx)
    desk = cli.desk(model=model)
    if not end and not request.strip():
        raise UsageError("nothing is asked.", fix='say what you want: `council ask "…"`')
    require_own_model(desk, model)
    body: dict[str, Any] = {"type": "ask", "request": request, "conversation": conversation or None, "new": new}
    body |= {"dry_run": dry_run, "end": end, "project": project or None, "user": user or None}
    body["input_artifacts"] = [path_in_home(file, desk.home.root) for file in files or []]
    try:
        wait_for_answer(
            cli,
            desk,
            {key: value for key, value in body.items() if value not in (None, False, [], "")},
            timeout_s,
            as_json,
        )
    except CommandInvalid as error:
        if error.field.startswith("input_artifacts."):  # in the words of the command line
            error.message = error.message.replace(f"`{error.field}`", "`--file`")
        raise


def answer(
    ctx: typer.Context,
    run: Annotated[str, typer.Argument(help="The run's id, its first characters, or `last`.")],
    words: Annotated[str, typer.Argument(metavar="ANSWER", help="Your answer, in your own words.")],
    user: User = "",
    timeout_s: Timeout = 3600.0,
    model: _Model = None,
    as_json: AsJson = False,
) -> None:
    cli = state(ctx)
    desk = cli.desk(model=model)
    require_own_model(desk, model)
    body = {"type": "answer", "run": find_for(desk, run, "answer"), "answer": words} | ({"user": user} if user else {})
    wait_for_answer(cli, desk, body, timeout_s, as_json)


def wait_for_answer(cli: CliState, desk: Desk, body: dict[str, Any], timeout_s: float, as_json: bool) -> None:
    """Prints the answer, or the question, and exits with the code of the run."""
    stream = _Stream(desk, shows=sys.stdout.isatty() and not as_json)

    def drain(only: str, left_s: float) -> None:
        if serve(desk, once=True, tell=None, only=only, timeout_s=left_s, hear=stream.hear) == EXIT_INTERRUPTED:
            raise KeyboardInterrupt

    try:
        reply = ask_and_wait(desk, body, timeout_s, drain, stream.watch)
    except KeyboardInterrupt:
        is_served = FileLock.holder(desk.home.lock_file) is not None
        goes_on = "The daemon continues" if is_served else "The next `council ask` or `council run` continues"
        typer.echo(f"\n{goes_on} with what you asked; `council cancel last` ends it.", err=True)
        raise
    if as_json:
        told = {"run_id": reply.run_id, "question": reply.question, "waits": reply.waits}
        if reply.receipt is not None:
            told = msgspec.to_builtins(reply.receipt) | {"answer": reply.answer, "agents": list(reply.agents)}
        print_json(told | {"conversation": reply.conversation})
    elif reply.waits:
        typer.echo(f"There is no answer yet: {reply.waits}", err=True)
        later = "`council status` shows it" if reply.awaits_person else "`council run` continues it"
        typer.echo(f"{later}; `council show last` prints the answer when it is ready.", err=True)
    elif reply.receipt is None:
        typer.echo(f"{reply.question}\n")
        as_whom = f" --user {body['user']}" if "user" in body else ""
        ask_again = f'council ask "…"{as_whom}, or ' if body["type"] == "ask" else ""
        typer.echo(f'To answer: {ask_again}council answer {reply.run_id} "…"{as_whom}', err=True)
    elif not stream.complete(reply):
        print_answer(cli, reply.receipt, brief=not body.get("dry_run"))
    if reply.receipt is None:
        raise typer.Exit(EXIT_WAITING)
    error = reply.receipt.error
    is_refused = error is not None and error.code == GuardrailBlocked.code
    raise typer.Exit(EXIT_REFUSED if is_refused else STATUS_EXIT.get(reply.receipt.status, EXIT_OK))


class _Stream:
    """The answer on the terminal while it is said: from this process's own events, or from a daemon's growing page."""

    def __init__(self, desk: Desk, *, shows: bool) -> None:
        self._desk = desk
        self._shows = shows
        self._said = ""
        self._speaker = ""

    def hear(self, event: Event) -> None:
        if not self._shows or not isinstance(event, SpeechPiece) or self._speaker not in ("", event.role):
            return
        if event.text is None:
            self._print("\n(The reply broke off; it starts again.)\n")
            self._said = ""
            return
        self._speaker = event.role
        self._print(event.text)

    def watch(self, text: str) -> None:
        if self._shows and text.startswith(self._said):
            self._print(text[len(self._said) :])

    def complete(self, reply: AskReply) -> bool:
        """The rest of the answer, where its beginning was shown; False where nothing was."""
        if not self._said.strip() or reply.receipt is None or reply.receipt.artifact is None:
            return False
        path = self._desk.home.root / reply.receipt.artifact.path
        page = without_front_matter(path.read_text(encoding="utf-8", errors="replace"))
        said, whole = self._said.strip(), answer_in(page)
        if not whole.startswith(said):
            typer.echo("\n")
            return False
        typer.echo(whole[len(said) :])
        for warning in warnings_in(page):
            typer.echo(f"\n{warning}")
        typer.echo(f"\nStatus: {told_status(reply.receipt)} The whole record: {reply.receipt.artifact.path}")
        return True

    def _print(self, text: str) -> None:
        self._said += text
        typer.echo(text, nl=False)
        sys.stdout.flush()

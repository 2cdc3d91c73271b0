"""`council agents`, `memory` and `forget`: the agents that deliberate here, and what they remember. Memory is changed by a
command in its lane's turn."""

from __future__ import annotations

import contextlib
import os
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated

import typer

from council.agents.manifest import agent_not_found
from council.agents.memory_digest import digest, without_rehearsals
from council.cli.context import AsJson, CliState, Yes, aligned, print_json, require_yes, state, tell
from council.cli.given_files import beginning_of
from council.cli.run_control import Receipted, print_answer
from council.cli.waiting import wait_for
from council.commands.file_formats import problems_of
from council.desk.agent_memory import (
    answers_as_yaml,
    answers_in,
    asks_no_model,
    change_memory,
    forget_command,
    remembered,
    sha256_of_memory,
    task_json,
)
from council.desk.agent_memory import forget as forget_all
from council.desk.drop_and_wait import Errand
from council.desk.run_lookup import find_ended
from council.errors import EXIT_USAGE, STATUS_EXIT, CommandInvalid, UsageError
from council.ids import local_times
from council.proposals import nearest
from council.upkeep.system import beyond_forget

agents = typer.Typer(no_args_is_help=True)


@agents.command("list")
def list_(
    ctx: typer.Context, as_json: Annotated[bool, typer.Option("--json", help="Print one JSON list.")] = False
) -> None:
    """List every agent with its tools and purpose."""
    desk = state(ctx).desk()
    found = sorted(desk.personas().values(), key=lambda manifest: manifest.role)
    tools = desk.tools()
    for manifest in found:
        for name in manifest.tools:
            if name.upper() not in tools:
                near = nearest(name, tools)
                meant = f"did you mean {near}?" if near else f"known: {', '.join(sorted(tools))}"
                typer.echo(f"warning: {manifest.role} names the tool {name}, which does not exist; {meant}", err=True)
    rows = []
    for manifest in found:
        tools_of = ", ".join(manifest.tools) or "none"
        rows += [(manifest.role, manifest.purpose), ("", f"tools: {tools_of}; trust: {manifest.trust}")]
    told = [manifest.model_dump(mode="json", exclude={"instructions"}) for manifest in found]
    tell(told, aligned(rows), as_json=as_json)


@agents.command()
def show(
    ctx: typer.Context, role: Annotated[str, typer.Argument(help="The agent's role.")], as_json: AsJson = False
) -> None:
    """Print one agent: its manifest and its instructions."""
    found = state(ctx).desk().personas()
    manifest = found.get(role.upper())
    if manifest is None:
        raise agent_not_found(role, found)
    context = manifest.context
    fields = (context.required, context.optional, context.forbidden)
    required, optional, forbidden = (", ".join(words) or "nothing" for words in fields)
    rows = {name: getattr(manifest, name) for name in ("role", "id", "purpose", "tools", "trust", "scope")}
    rows |= {"tools": ", ".join(manifest.tools) or "none"}
    rows |= {"context": f"needs {required}; may have {optional}; never {forbidden}"}
    lines = [f"{name:<8} {value}" for name, value in rows.items()]
    tell(manifest.model_dump(mode="json"), [*lines, "", manifest.instructions], as_json=as_json)


memory = typer.Typer(no_args_is_help=True)

_WAIT_S = 3600.0
_MAX_TEXT_CHARS = 20_000
_MAX_FILE_BYTES = 1 << 20  # no home can be set to take a larger command
_EDITED = "the edited text"
_Role = Annotated[str, typer.Argument(help="The agent's role, such as auditor.")]
_Lane = Annotated[str, typer.Option(help="The lane, the key `session` of commands.")]


@memory.command("show")
def show_memory(ctx: typer.Context, role: _Role, lane: _Lane = "main", as_json: AsJson = False) -> None:
    """Print the remembered tasks, and the digest of them that prompts contain."""
    desk = state(ctx).desk()
    loaded = remembered(desk, role.upper(), lane)
    session, carried = loaded.session, digest(without_rehearsals(loaded.session))
    tasks = [task_json(task) | {"messages": len(task.messages)} for task in session.tasks]
    told = {"role": session.role, "lane": session.lane, "damage": loaded.damage, "digest": carried, "tasks": tasks}
    lines = [f"warning: {loaded.damage}"] if loaded.damage else []
    if not session.tasks:
        tell(told, [*lines, f"{session.role} remembers nothing in lane {session.lane}."], as_json=as_json)
        return
    count = f"{len(session.tasks)} task{'s' if len(session.tasks) != 1 else ''}"
    lines += [f"{session.role}, lane {session.lane}, {count}", ""]
    for task in session.tasks:
        held = f"{len(task.messages)} messages{', rehearsed' if task.rehearsed else ''}"
        lines.append(
            f"  {task.run_id}  {task.status:<9}  {local_times(task.finished, desk.zone)}  {task.title} ({held})"
        )
    rehearsed = digest(session) if any(task.rehearsed for task in session.tasks) else ""
    for who, words in (("A language model", carried), ("A rehearsal", rehearsed)):
        lines += ["", f"{who} sees:", "", words.rstrip()] if words else []
    if not carried:
        lines += ["", "A language model sees nothing of this, because it was rehearsed."]
    tell(told, lines, as_json=as_json)


@memory.command()
def edit(
    ctx: typer.Context,
    role: _Role,
    lane: _Lane = "main",
    file: Annotated[
        Path | None, typer.Option(help="The edited YAML file. Default: $VISUAL or $EDITOR opens it.")
    ] = None,
    as_json: Receipted = False,
) -> None:
    """Edit what an agent remembers. The old version goes to the archive."""
    cli = state(ctx)
    desk = cli.desk()
    role = role.upper()
    # The memory as it is now, so that a task that ends meanwhile is not edited away.
    base_sha256 = sha256_of_memory(desk, role, lane)
    before = answers_as_yaml(remembered(desk, role, lane).session)
    after = _read(file) if file is not None else _edited(cli, before, role)
    if after == before:
        typer.echo("Nothing changed.")
        return
    keys = {"answers": answers_in(after, str(file or _EDITED)), **({"base_sha256": base_sha256} if base_sha256 else {})}
    _obeyed(cli, lane, lambda: change_memory(desk, role, lane, "replace", **keys), as_json=as_json)


@memory.command()
def reset(ctx: typer.Context, role: _Role, lane: _Lane = "main", yes: Yes = False, as_json: Receipted = False) -> None:
    """Clear the memory of an agent. The old version goes to the archive."""
    role = role.upper()
    require_yes(f"{role} will remember nothing in lane {lane} (the archive keeps it). Continue?", given=yes)
    desk = state(ctx).desk()
    _obeyed(state(ctx), lane, lambda: change_memory(desk, role, lane, "reset"), as_json=as_json)


def _edited(cli: CliState, text: str, role: str) -> str:
    """The text as the person's editor leaves it; its file is gone afterwards. A text that will not do is kept."""
    editor = cli.environ.get("VISUAL") or cli.environ.get("EDITOR")
    if not editor:
        raise UsageError("no editor is set.", fix="set EDITOR, or give the edited YAML with --file")
    with tempfile.TemporaryDirectory(prefix="council-memory-") as folder:
        path = Path(folder) / f"{role.lower()}.yaml"
        path.write_text(text, encoding="utf-8")
        try:
            code = subprocess.run([*shlex.split(editor), str(path)], check=False).returncode
        except OSError as error:
            fix = "set EDITOR to your editor"
            raise UsageError(f"{editor} cannot be started: {error.strerror}.", fix=fix) from None
        if code != 0:
            raise UsageError(f"{editor} ended with {code}; nothing was changed.", fix="edit it again")
        edited = _read(path)
    try:
        answers_in(edited, _EDITED)
    except UsageError as error:
        fd, kept = tempfile.mkstemp(prefix="council-memory-", suffix=".yaml")
        with os.fdopen(fd, "w", encoding="utf-8") as stream:
            stream.write(edited)
        error.fix = f"{error.fix}; your text is kept: correct it, then `council memory edit … --file {kept}`"
        raise
    return edited


def _read(file: Path) -> str:
    fix = "name a YAML file of answers, in UTF-8"
    data = beginning_of(file, _MAX_FILE_BYTES, fix)
    if len(data) > _MAX_FILE_BYTES:
        raise UsageError(f"{file} is larger than {_MAX_FILE_BYTES} bytes.", fix="name a YAML file of answers")
    if not data.strip():
        fix = "edit it again; to clear the memory, use `council memory reset`"
        raise UsageError(f"{file.name} is empty, so nothing was changed.", fix=fix)
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise UsageError(f"cannot read {file}: it is not UTF-8.", fix=fix) from None


def _obeyed(cli: CliState, lane: str, drop: Callable[[], Errand], *, as_json: bool) -> None:
    desk = cli.desk()
    model = "offline" if asks_no_model(desk, lane) else None
    with _telling_problems():
        errand = drop()
    receipt = wait_for(desk, errand, _WAIT_S, quiet=True, model=model)
    if as_json:
        print_json(receipt)
    else:
        print_answer(cli, receipt)
        if receipt.error is not None:
            typer.echo(f"error ({receipt.error.code}): {receipt.error.message}\n  fix: {receipt.error.fix}", err=True)
    raise typer.Exit(STATUS_EXIT[receipt.status])


@contextlib.contextmanager
def _telling_problems() -> Iterator[None]:
    try:
        yield
    except CommandInvalid as error:
        for problem in problems_of(error):
            typer.echo(f"error: {problem.sentence}\n  fix: {problem.fix}", err=True)
        raise typer.Exit(EXIT_USAGE) from None


def forget(
    ctx: typer.Context,
    text: Annotated[
        str | None,
        typer.Argument(help="The text in its exact words; - reads it from standard input.", show_default=False),
    ] = None,
    run: Annotated[str | None, typer.Option(help="Forget everything of this ended run.")] = None,
    lane: _Lane = "main",
    yes: Yes = False,
    as_json: Receipted = False,
) -> None:
    cli = state(ctx)
    if text is None and run is None:
        raise UsageError("neither a text nor a run is named.", fix="council forget TEXT, or council forget --run RUN")
    desk = cli.desk()
    run_id = None if run is None else find_ended(desk, run)
    if text == "-":
        if not yes:
            raise UsageError("it cannot ask you to confirm, because standard input is the text.", fix="add --yes")
        text = sys.stdin.read(_MAX_TEXT_CHARS).removesuffix("\n")
    with _telling_problems():
        forget_command(desk, lane, text, run_id)  # nobody is asked in vain
    what = " and ".join([*(["this text"] if text is not None else []), *([f"run {run_id}"] if run_id else [])])
    beyond = beyond_forget(is_server=desk.settings.database_url is not None)
    require_yes(f"This permanently removes everything that Council keeps of {what}. {beyond} Continue?", given=yes)
    _obeyed(cli, lane, lambda: forget_all(desk, lane, text, run_id), as_json=as_json)

"""The memory of agents: looked at here, changed only by a command that takes its lane's turn."""

from __future__ import annotations

import secrets
from typing import Any

import yaml

from council.agents.manifest import agent_not_found
from council.agents.memory import LoadedSession, Memory
from council.agents.session_file import SESSION_ENDING, RememberedTask, Session, session_bytes
from council.commands.file_formats import read_document
from council.commands.parsing import parse_command
from council.desk.desk import Desk
from council.desk.drop_and_wait import Errand
from council.errors import CommandInvalid, UsageError
from council.ids import readable_json, sha256_hex
from council.storage.files import as_storage_failed


def remembered(desk: Desk, role: str, lane: str) -> LoadedSession:
    """Raises AgentNotFound for a role that has neither memory nor persona: most likely a slip of the pen."""
    _require_plain(role, lane)
    memory = Memory(desk.home.session_states, desk.store)
    if not memory.path(role, lane).exists() and role not in (known := desk.personas()):
        raise agent_not_found(role, known)
    return memory.look(role, lane)


def task_json(task: RememberedTask) -> dict[str, Any]:
    """A remembered task as programs read it, without what was said in it."""
    names = ("run_id", "title", "status", "finished", "answer", "rehearsed")
    return {name: getattr(task, name) for name in names}


def lanes_of(desk: Desk) -> dict[str, list[str]]:
    """The lanes in which each agent has a memory, by role, as the files of this moment tell."""
    found: dict[str, list[str]] = {}
    for path in sorted(desk.home.session_states.glob(f"**/*{SESSION_ENDING}")):
        folders = path.relative_to(desk.home.session_states).parts[:-1]
        if len(folders) < 2 and folders[:1] != ("archive",):
            role = path.name.removesuffix(SESSION_ENDING).upper()
            found.setdefault(role, []).append(folders[0] if folders else "main")
    return found


def sha256_of_memory(desk: Desk, role: str, lane: str) -> str:
    """Tells this version of a memory from a later one; empty where there is none. Raises UsageError, StorageFailed."""
    _require_plain(role, lane)
    path = Memory(desk.home.session_states, desk.store).path(role, lane)
    with as_storage_failed(f"Cannot read {path}"):
        return sha256_hex(session_bytes(path)) if path.is_file() else ""


def change_memory(desk: Desk, role: str, lane: str, action: str, **keys: Any) -> Errand:
    """Drops a command that replaces or resets a memory. Raises CommandInvalid before anything is dropped."""
    body = {"type": "memory", "session": lane, "role": role, "action": action} | keys
    return Errand(desk, f"memory-{role.lower()}.json", _checked(desk, body))


def forget(desk: Desk, lane: str, text: str | None, run_id: str | None, user: str | None = None) -> Errand:
    """Drops a command that forgets a text or a run, on behalf of `user` if one is named. Raises as `change_memory`."""
    return Errand(desk, "forget.json", forget_command(desk, lane, text, run_id, user))


def forget_command(desk: Desk, lane: str, text: str | None, run_id: str | None, user: str | None = None) -> bytes:
    """The command that `forget` drops. Raises CommandInvalid."""
    body = {"type": "forget", "session": lane, "text": text, "run": run_id, "salt": secrets.token_hex(16), "user": user}
    return _checked(desk, {key: value for key, value in body.items() if value is not None})


def asks_no_model(desk: Desk, lane: str) -> bool:
    """True where no deliberation comes before such a command in its lane: a change of memory itself asks no model."""
    unfinished = (desk.ledger.journal(run_id).header for run_id in desk.ledger.unfinished())
    return not any(header.lane == lane and header.output_path for header in unfinished)


def answers_as_yaml(session: Session) -> str:
    """The remembered answers as a person edits them, with a word of how."""

    class Dumper(yaml.SafeDumper):
        """Texts of several lines as blocks."""

    def text(dumper: yaml.SafeDumper, value: str) -> yaml.ScalarNode:
        return dumper.represent_scalar("tag:yaml.org,2002:str", value, style="|" if "\n" in value else None)

    Dumper.add_representer(str, text)
    answers = [{"run_id": task.run_id, "title": task.title, "answer": task.answer} for task in session.tasks]
    head = [
        f"# What {session.role} remembers in lane {session.lane}, oldest first. Change a title or an answer, remove an",
        "# entry, or add one with a run_id of your own. What you change or remove goes to the archive.",
    ]
    body = yaml.dump(answers, Dumper=Dumper, sort_keys=False, allow_unicode=True, width=100)
    return "\n".join([*head, "", body])


def answers_in(text: str, where: str) -> list[dict[str, Any]]:
    """The list in the YAML; what each entry must be is the command's own check. Raises UsageError, which names `where`."""
    try:
        answers = read_document("answers.yaml", text.encode()).value
    except CommandInvalid as error:
        raise UsageError(f"{where}: {error.message}.", fix=error.fix) from None
    if answers is None:
        return []
    if not isinstance(answers, list) or not all(isinstance(entry, dict) for entry in answers):
        raise UsageError(f"{where} is no list of answers.", fix="write entries of run_id, title and answer")
    return [{key: value for key, value in entry.items() if key != "title" or value} for entry in answers]


def _checked(desk: Desk, body: dict[str, Any]) -> bytes:
    data = readable_json(body, indent=2).encode()
    parse_command(desk.commands, "memory.json", data)  # the door says what the daemon would say in `commands/failed/`
    return data


def _require_plain(role: str, lane: str) -> None:
    """Role and lane become part of a path."""
    for what, value in (("role", role), ("lane", lane)):
        if not value.replace("_", "").replace("-", "").isalnum() or not value.isascii() or len(value) > 64:
            raise UsageError(f"{value[:64]!r} is not a valid {what}.", fix="use up to 64 letters, digits, - and _")

"""The tables of the workspace. Times are milliseconds since the epoch. `version` grows with each change of a row.

A principal's id stands in `author` without a foreign key: the steward is no row of `users`.
"""

from __future__ import annotations

from typing import Any, get_args

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    ForeignKey,
    ForeignKeyConstraint,
    Index,
    Integer,
    LargeBinary,
    String,
    Table,
)

from council.storage.tables import NO_WORDS, Words, metadata
from council.workspace.arguments import Priority, Role, Status


def _id(name: str, of: str = "", *, key: bool = False, needed: bool = True) -> Column[str]:
    keys = [ForeignKey(of, ondelete="CASCADE")] if of else []
    return Column(name, String(64), *keys, primary_key=key, nullable=not needed)


def _one_of(name: str, words: Any) -> CheckConstraint:
    return CheckConstraint(f"{name} IN ({', '.join(map(repr, get_args(words)))})", name=name)


def _words(*names: str) -> tuple[Column[str], ...]:
    return tuple(Column(name, Words, nullable=False) for name in names)


def _of_member() -> ForeignKeyConstraint:
    there = ["workspace_members.org_id", "workspace_members.user_id"]
    return ForeignKeyConstraint(["org_id", "user_id"], there, ondelete="CASCADE")


def _created() -> Column[int]:
    return Column("created_ms", BigInteger, nullable=False)


def _version() -> Column[int]:
    return Column("version", Integer, nullable=False, server_default="1")


organizations = Table(
    "workspace_organizations",
    metadata,
    _id("org_id", key=True),
    *_words("name"),
    _id("author"),
    _created(),
)

members = Table(
    "workspace_members",
    metadata,
    _id("org_id", "workspace_organizations.org_id", key=True),
    _id("user_id", "users.user_id", key=True),
    Column("role", String(16), nullable=False),
    _created(),
    _one_of("role", Role),
)

capabilities = Table(
    "workspace_capabilities",
    metadata,
    _id("org_id", key=True),
    _id("user_id", key=True),
    Column("capability", String(32), primary_key=True),
    _of_member(),
)

invitations = Table(
    "workspace_invitations",
    metadata,
    _id("org_id", "workspace_organizations.org_id", key=True),
    _id("user_id", "users.user_id", key=True),
    Column("role", String(16), nullable=False),
    _id("author"),
    Column("expires_ms", BigInteger, nullable=False),
    _one_of("role", Role),
)

projects = Table(
    "workspace_projects",
    metadata,
    _id("project_id", key=True),
    _id("org_id", "workspace_organizations.org_id"),
    *_words("name", "description"),
    _id("author"),
    _created(),
    Index("ix_workspace_projects_org_id", "org_id"),
)

permissions = Table(
    "workspace_permissions",
    metadata,
    _id("project_id", "workspace_projects.project_id", key=True),
    _id("org_id"),
    _id("user_id", key=True),
    Column("permission", String(32), primary_key=True),
    _of_member(),
)

tasks = Table(  # `criteria`: one on each line
    "workspace_tasks",
    metadata,
    _id("task_id", key=True),
    _id("project_id", "workspace_projects.project_id"),
    *_words("title", "description"),
    Column("status", String(16), nullable=False),
    Column("priority", String(16), nullable=False),
    *_words("epic", "stage"),
    Column("position", Integer, nullable=False),
    *_words("criteria"),
    _id("assignee", "users.user_id", needed=False),
    Column("due", String(32)),
    _id("author"),
    _created(),
    _version(),
    _one_of("status", Status),
    _one_of("priority", Priority),
    CheckConstraint("position >= 0", name="position"),
    Index("ix_workspace_tasks_project_id", "project_id"),
)

notes = Table(  # without a project it is its author's own
    "workspace_notes",
    metadata,
    _id("note_id", key=True),
    _id("project_id", "workspace_projects.project_id", needed=False),
    _id("author"),
    *_words("title", "content"),
    _created(),
    _version(),
    Index("ix_workspace_notes_author", "author"),
)

note_locks = Table(  # the secret's scrypt; it guards the content, and does not encipher it
    "workspace_note_locks",
    metadata,
    _id("note_id", "workspace_notes.note_id", key=True),
    Column("salt", LargeBinary, nullable=False, info=NO_WORDS),
    Column("digest", LargeBinary, nullable=False, info=NO_WORDS),
)

note_unlocks = Table(
    "workspace_note_unlocks",
    metadata,
    _id("note_id", "workspace_note_locks.note_id", key=True),
    _id("principal", key=True),
    Column("until_ms", BigInteger, nullable=False),
)

events = Table(  # `date` is local to `zone`; `reminders`: minutes before, with commas between them
    "workspace_events",
    metadata,
    _id("event_id", key=True),
    _id("org_id", "workspace_organizations.org_id"),
    *_words("title", "description"),
    Column("date", String(32), nullable=False),
    Column("zone", String(64), nullable=False),
    Column("starts_ms", BigInteger, nullable=False),
    *_words("region"),
    Column("public", Boolean, nullable=False),
    Column("reminders", String(64), nullable=False),
    _id("author"),
    _created(),
    _version(),
    Index("ix_workspace_events_org_id", "org_id"),
)

comments = Table(
    "workspace_comments",
    metadata,
    _id("comment_id", key=True),
    _id("task_id", "workspace_tasks.task_id", needed=False),
    _id("event_id", "workspace_events.event_id", needed=False),
    _id("author"),
    *_words("content"),
    _created(),
    CheckConstraint("(task_id IS NULL) <> (event_id IS NULL)", name="one_subject"),
    Index("ix_workspace_comments_task_id", "task_id"),
    Index("ix_workspace_comments_event_id", "event_id"),
)

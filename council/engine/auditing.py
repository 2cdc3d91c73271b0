"""What the engine asks of the audit: the seam, for the engine knows neither keys nor databases."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import msgspec

from council.engine.records import Committed, RunHeader
from council.ids import STEWARD, sha256_hex

AUDIT_HEAD = "audit_head"  # the step that records the end of the chain as it was before the commit
MAX_FILES = 64  # of one commit in a record; the journal holds them all
_ACTIONS = {"memory": "memory_changed", "forget": "text_forgotten"}


class Audit(Protocol):
    """Each may be asked again for the same run, and then records nothing twice. Each raises StorageFailed."""

    async def record_refusals(self, run_id: str, actor: str, refusals: Sequence[Mapping[str, Any]]) -> str:
        """Records what was refused to a run so far; the end of the chain then."""

    async def after_commit(self, run_id: str, step: str, action: str, actor: str, detail: Mapping[str, Any]) -> None:
        """Records what a run's commit changed."""

    async def approved(self, run_id: str, step: str, action: str, actor: str, detail: Mapping[str, Any]) -> None:
        """Records what a person approved for a run."""


class Unaudited:
    """Nothing is recorded: for runs that change nothing of anybody's."""

    async def record_refusals(self, run_id: str, actor: str, refusals: Sequence[Mapping[str, Any]]) -> str:
        return ""

    async def after_commit(self, run_id: str, step: str, action: str, actor: str, detail: Mapping[str, Any]) -> None:
        return None

    async def approved(self, run_id: str, step: str, action: str, actor: str, detail: Mapping[str, Any]) -> None:
        return None


def actor_of(header: RunHeader) -> str:
    """On whose behalf a run acts."""
    user = header.command.get("user")
    return str(user) if user else STEWARD.id


async def record_commit(audit: Audit, header: RunHeader, committed: Committed, finals: Sequence[str]) -> None:
    """A commit is known by its own bytes: a run that goes on and ends again has another one."""
    files = [{"path": path, "sha256": file.sha256} for path, file in zip(finals, committed.files, strict=True)]
    detail = {"type": header.type, "lane": header.lane, "status": committed.status, "files": files[:MAX_FILES]}
    step = f"commit-{sha256_hex(msgspec.json.encode(committed))[:16]}"
    action = _ACTIONS.get(header.type, "run_ended")
    await audit.after_commit(header.run_id, step, action, actor_of(header), detail)

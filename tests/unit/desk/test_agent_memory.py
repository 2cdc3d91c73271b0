"""The memory of agents: looked at, and changed only by a command."""

from __future__ import annotations

import json

import pytest

from council.desk.agent_memory import change_memory, forget, remembered, sha256_of_memory
from council.desk.desk import Desk
from council.errors import CommandInvalid, UsageError


def test_an_agent_that_remembers_nothing_yet_is_not_an_unknown_one(desk: Desk) -> None:
    assert remembered(desk, "AUDITOR", "main").session.tasks == ()
    for name, fix in (("NOBODY", "see `council agents list`"), ("AUDITR", "did you mean AUDITOR?")):
        with pytest.raises(UsageError, match=f"there is no agent {name} here") as refused:
            remembered(desk, name, "main")
        assert refused.value.fix == fix


@pytest.mark.parametrize(("role", "lane"), [("../AUDITOR", "main"), ("AUDITOR", "a/b"), ("AUDİTOR", "main")])
def test_what_would_lead_out_of_the_folder_is_no_role_and_no_lane(desk: Desk, role: str, lane: str) -> None:
    with pytest.raises(UsageError, match=r"is not a valid (role|lane)"):
        remembered(desk, role, lane)
    with pytest.raises(UsageError, match=r"is not a valid (role|lane)"):
        sha256_of_memory(desk, role, lane)


def test_a_change_is_a_command_in_the_inbox_and_touches_no_memory(desk: Desk) -> None:
    dropped = change_memory(desk, "AUDITOR", "main", "reset").dropped
    assert dropped.path.name == "memory-auditor.json"
    assert json.loads(dropped.path.read_bytes()) == {
        "type": "memory", "session": "main", "role": "AUDITOR", "action": "reset",
    }  # fmt: skip
    assert sha256_of_memory(desk, "AUDITOR", "main") == ""


def test_a_change_that_cannot_be_is_refused_before_it_is_dropped(desk: Desk) -> None:
    with pytest.raises(CommandInvalid):
        change_memory(desk, "AUDITOR", "main", "replace", answers=[{"run_id": 1}])
    assert list(desk.home.commands.glob("*.json")) == []


def test_what_is_to_be_forgotten_is_salted_and_names_no_run_where_none_is_meant(desk: Desk) -> None:
    body = json.loads(forget(desk, "main", "a secret text", None).dropped.path.read_bytes())
    assert (body["text"], "run" in body, len(body["salt"])) == ("a secret text", False, 32)

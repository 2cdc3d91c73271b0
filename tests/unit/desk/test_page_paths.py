"""The paths that a command's page gets from its title."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from council.desk.desk import Desk
from council.redaction import Redactor, Secret

SECRET = "pump-report-2026"
ASKED = f"Is the password {SECRET} good?"


@pytest.mark.parametrize("titled", [{}, {"title": ASKED}], ids=["its own words", "a title"])
@pytest.mark.parametrize(
    "keys",
    [
        {"type": "deliberate", "task_description": ASKED, "output_artifact_path": "artifacts/"},
        {"type": "ask", "request": ASKED},
        {"type": "create_specialist", "request": ASKED},
    ],
    ids=["deliberate", "ask", "create_specialist"],
)
def test_no_path_is_made_of_a_secret(desk: Desk, keys: dict[str, Any], titled: dict[str, str]) -> None:
    type_ = desk.commands[keys["type"]]
    with desk.premises() as premises:
        guarded = dataclasses.replace(premises, redactor=Redactor([Secret(SECRET)]))
        path = type_.admit(type_.model.model_validate(keys | titled), guarded).output_path
    assert path.endswith("/is-the-password-secret-good.md")

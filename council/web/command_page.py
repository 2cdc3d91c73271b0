"""The page on which a person writes a command. What is wrong with it stands beside its field, as `council validate` says it."""

from __future__ import annotations

import json
from pathlib import Path

from starlette.datastructures import FormData

from council.deliberation.commands import DeliberateCommand, DeliberateConfig
from council.deliberation.deliberate_admission import TRIAD, may_sit
from council.desk.desk import Desk
from council.desk.validation import judge
from council.desk.window import ordered
from council.errors import CommandInvalid
from council.web.forms import Form, fields_of, texts_of, values_of
from council.web.sign_in import Person
from council.web.window_pages import Filters, PageAction, WindowPage

_PREFIX = "config."
_FIRST = ("task_description", "input_artifacts", "output_artifact_path", f"{_PREFIX}agents", f"{_PREFIX}protocol")
_NOT_TYPED = ("$schema", "type", "id", "user", "budget")


def command_form(desk: Desk, who: Person, filters: Filters) -> Form:
    """The fields of a deliberation, the four that matter most first, with what the settings say as their beginning."""
    settings = desk.settings
    roles = {role for role, agent in desk.personas().items() if may_sit(agent, who.id)}
    in_order = [*(role for role in TRIAD if role in roles), *sorted(roles - set(TRIAD))]
    was = {
        f"{_PREFIX}protocol": settings.protocol,
        f"{_PREFIX}max_rounds": str(settings.max_rounds),
        f"{_PREFIX}agents": "\n".join(settings.agents or ()),
    }
    shown = {"output_artifact_path": "artifacts/", **filters}
    found = (
        *fields_of(DeliberateCommand, shown, leave_out=_NOT_TYPED),
        *fields_of(
            DeliberateConfig, shown, was, leave_out=_NOT_TYPED, options={f"{_PREFIX}agents": in_order}, prefix=_PREFIX
        ),
    )
    order = {name: number for number, name in enumerate(_FIRST)}
    fields = sorted(found, key=lambda one: order.get(one.name, len(order)))
    return Form("New command", "/command", "Drop it", tuple(fields), "/now", ())


def drop_command(desk: Desk, who: Person, filters: Filters, sent: FormData) -> str:
    """Judges the command, and drops it when nothing is wrong. Raises CommandInvalid with every problem; a warning is one, too,
    until the person drops it all the same."""
    texts = texts_of(sent)
    config = values_of(DeliberateConfig, texts, _PREFIX)
    body = {"type": "deliberate", **values_of(DeliberateCommand, texts), **({"config": config} if config else {})}
    user = {} if who.user is None else {"user": who.user}
    verdict = judge(desk.commands, desk, Path("deliberate.json"), json.dumps({**body, **user}).encode())
    if count := len(verdict.problems):
        wrong = "One thing is wrong" if count == 1 else f"{count} things are wrong"
        raise CommandInvalid(f"{wrong} with this command.", problems=list(verdict.problems))
    if verdict.warnings and "anyway" not in texts:
        but = "as things are its run would fail" if verdict.code else "look at the warnings first"
        raise CommandInvalid(f"The command fits, but {but}.", problems=list(verdict.warnings), only_warnings=True)
    ordered(desk, who.user, body)
    return "/now"


_PAGE = WindowPage("/command", "New command", "command.html", command_form)
PAGES = (_PAGE,)
ACTIONS = (PageAction("/command", _PAGE, drop_command),)

"""`council status`: the state of the home. It is asked for often, and loads little."""

from __future__ import annotations

from typing import Any

import typer

from council.cli.context import AsJson, first_of, state, tell
from council.desk.overview import FIRST_QUESTION, overview
from council.engine.records import waited_for
from council.errors import StorageFailed
from council.ids import STEWARD, local_times
from council.safety.untrusted import plain_line

_SHOWN_PLANS = 10


def progress_line(run: dict[str, Any]) -> str:
    """A run that has not ended, as `overview` tells it: `running, round 1 of 3, AUDITOR`."""
    progress = f", round {run['round']} of {run['max_rounds']}" if run.get("max_rounds") else ""
    speaker = f", {run['role']}" if run.get("role") else ""
    waits = waited_for(run["waiting_for"]) if run.get("waiting_for") else ""
    if run.get("behind"):
        return f"queued behind run {run['behind']}"
    if run["status"] == "queued" and run.get("begun"):
        return "begun, waits for a daemon"
    return f"{run['status']}{waits}{progress}{speaker}"


def _names(files: list[str]) -> str:
    """A file's name may hold a line end or a terminal's escape sequence."""
    return first_of([plain_line(name, 255) for name in files])


def status(ctx: typer.Context, as_json: AsJson = False) -> None:
    unread: list[StorageFailed] = []
    desk = state(ctx).desk()
    view = overview(desk, unread)
    lines = [f"home    {view.home}"]
    if view.daemon is None:
        lines.append("daemon  not running (start it with `council run`)")
    else:
        lines.append(f"daemon  {view.state}, pid {view.daemon.get('pid', '?')}, model {view.model or '?'}")
    lines += [f"  degraded: {name}: {reason}" for name, reason in view.degraded.items()]
    lines += [
        f"  {name} was edited after the daemon started: restart it to use the change" for name in view.edited_settings
    ]
    for run in view.runs:
        lines.append(f"  {run['run_id']}  {progress_line(run)}: {run['title']}")
        if run["status"] == "waiting" and run.get("error"):
            sooner = (
                "" if run.get("waiting_for") == "answer" else f"; `council resume {run['run_id']}` continues it sooner"
            )
            lines.append(f"    It waits until {local_times(run['until'], desk.zone)}{sooner}. Reason: {run['error']}")
    if (more := (view.unfinished or 0) - len(view.runs)) > 0:
        lines.append(f"  … and {more} more that have not ended")
    lines += [f"  {plain_line(file['file'], 255)} stays in the inbox: {file['error']}" for file in view.unadmitted]
    if view.waiting_files:
        lines.append(f"inbox   {_names(view.waiting_files)}")
    if view.not_commands:
        lines.append(f"skipped {_names(view.not_commands)}")
        lines.append("        (not command files; `council validate FILE` says why)")
    if newest := view.refused["newest"]:
        count = view.refused["count"]
        files = "1 file" if count == 1 else f"{count} files"
        name = plain_line(newest["file"], 255)
        lines.append(f"refused {files} in commands/failed/; the newest, {name}: {newest['why']}")
        lines += [f"        fix: {newest['fix']}"] if newest["fix"] else []
    if view.plans:
        whose = sorted({plan["for"] for plan in view.plans}, key=lambda name: (name != STEWARD.id, name))
        ways = [f"`council plans{'' if name == STEWARD.id else f' --user {name}'}`" for name in whose]
        lines.append(f"plans   wait for a decision; {', '.join(ways)} walk{'s' if len(ways) == 1 else ''} through them")
    for plan in view.plans[:_SHOWN_PLANS]:
        since = local_times(plan["since"], desk.zone)
        lines.append(f"  {plan['plan']}  {plan['state']} since {since}, for {plan['for']}: {plan['title']}")
    if (more := len(view.plans) - _SHOWN_PLANS) > 0:
        lines.append(f"  … and {more} more")
    if view.recent:
        lines.append("recent")
    elif not (view.runs or view.waiting_files or unread):
        lines.append(f"no run yet: {FIRST_QUESTION} asks the council")
    lines += [f"  {run['run_id']}  {run['status']:<9}  {run['artifact'] or run['title']}" for run in view.recent]
    tell(view.as_json(), lines, as_json=as_json)
    for error in unread:
        raise typer.Exit(error.exit_code)

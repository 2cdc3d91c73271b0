"""`council config`: every setting, and the place that each value comes from."""

from __future__ import annotations

import re

import typer

from council.cli.context import AsJson, aligned, state
from council.ids import readable_json
from council.redaction import MASK
from council.settings import BASE_URL_NAME, KEY_NAMES, left_out
from council.storage.paths import ALWAYS_DENIED

app = typer.Typer(no_args_is_help=True)

_USERINFO = re.compile(r"(?<=://)[^/\s@]*@")  # user:password@ in a URL


@app.command()
def show(ctx: typer.Context, as_json: AsJson = False) -> None:
    """List every setting with its value and source, and whether each provider key is set."""
    desk = state(ctx).desk()
    home, loaded, keys = str(desk.home.root), desk.loaded, desk.keys
    keys.register(table.key_env for table in loaded.settings.providers.values() if table.key_env)
    skipped = left_out(desk.home.root, loaded.settings.read_roots)
    if as_json:
        values = loaded.settings.model_dump(mode="json")
        told = {
            "home": home,
            "settings": {key: {"value": value, "source": loaded.sources[key]} for key, value in values.items()},
            "keys": {name: {"set": name in keys.sources, "source": keys.sources.get(name)} for name in KEY_NAMES},
            "never_read": list(ALWAYS_DENIED),
            "left_out": list(skipped),
            BASE_URL_NAME: {"value": keys.gemini_base_url, "source": keys.sources.get(BASE_URL_NAME)},
        }
        text = readable_json(told, indent=2)
    else:
        rows = [("KEY", "VALUE", "SOURCE")]
        rows += [(key, _cell(value), loaded.sources[key]) for key, value in loaded.settings.model_dump().items()]
        rows += [(key, "set" if key in keys.sources else "not set", keys.sources.get(key, "-")) for key in KEY_NAMES]
        rows.append((BASE_URL_NAME, keys.gemini_base_url or "not set", keys.sources.get(BASE_URL_NAME, "-")))
        closed = [f"Agents never read: {', '.join(ALWAYS_DENIED)}."]
        closed += [f"The default read_roots leave out: {', '.join(skipped)}."] if skipped else []
        text = "\n".join([f"home: {home}", "", *aligned(rows), "", *closed])
    # The keys are never put into the text; this catches one that was pasted where it does not belong.
    typer.echo(_USERINFO.sub(f"{MASK}@", keys.redactor.redact(text)))


def _cell(value: object) -> str:
    if value is None:
        return "not set"
    if isinstance(value, tuple):
        return ", ".join(value) or "none"
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:.12g}" if isinstance(value, float) else str(value)

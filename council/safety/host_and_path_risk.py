"""Judges the reach of a host or a path that a proposed agent names, as a risk and a reason. Advice: the boundary is
that agents have no network, and that `storage.paths` opens nothing outside its roots."""

from __future__ import annotations

import ipaddress
import re
from typing import Literal

from council.errors import PathRefused
from council.safety.untrusted import plain_line
from council.storage.paths import ALWAYS_DENIED, PathRules

Risk = Literal["low", "medium", "high"]

_RELAYS = re.compile(
    r"(?:^|\.)(?:ngrok(?:-free)?\.(?:io|app|dev)|webhook\.site|requestbin\.(?:com|net)|pastebin\.com|transfer\.sh|burpcollaborator\.net"
    r"|oast\.(?:fun|pro|live|me)|interact\.sh|pipedream\.net|beeceptor\.com)$"
)
_HOST = re.compile(r"^(?:\*\.)?[a-z0-9](?:[a-z0-9-]*[a-z0-9])?(?:\.[a-z0-9](?:[a-z0-9-]*[a-z0-9])?)+$")
_LOCAL = re.compile(r"(?:^|\.)(?:localhost|local|internal|intranet|lan|home|corp)$|^metadata\b")
_STARS_AT_END = re.compile(r"(?:/|(?<!\*))\*++(?:/\*++)?$")  # begins at no star but the first: looked at once
_NUMBER = re.compile(r"(?:0x[0-9a-f]+|[0-9]+)(?:\.(?:0x[0-9a-f]+|[0-9]+)){0,3}")  # an address in another spelling


def judge_host(host: str) -> tuple[Risk, str]:
    """Judges a host name, with or without scheme, user, port and path."""
    shown = plain_line(host, 80)
    name = re.sub(r"^[a-z]+://", "", host.strip().lower()).split("/")[0].split("@")[-1]
    bare = (name if name.count(":") > 1 else name.split(":")[0]).rstrip(".")
    try:
        ipaddress.ip_address(re.sub(r":[0-9]+$", "", bare) if bare.startswith("[") else bare)
        is_address = True
    except ValueError:
        is_address = bool(re.match(r"\[[0-9a-f:.]+\]", bare) or _NUMBER.fullmatch(bare))
    if is_address:
        return "high", f"host `{shown}` is a bare address"
    if bare in ("", "*") or (bare.startswith("*.") and bare.count(".") < 2):
        return "high", f"host `{shown}` is every host"
    if _LOCAL.search(bare):
        return "high", f"host `{shown}` is inside this machine or its network"
    if _RELAYS.search(bare):
        return "high", f"host `{shown}` is a public relay, through which anything can be sent out"
    if not _HOST.match(bare):
        return "medium", f"host `{shown}` is not a host name"
    return "low", f"it names the host `{shown}`; an agent of this house has no network"


def judge_address(url: str) -> tuple[Risk, str]:
    """Judges the address of an outside request, which code fills in and sends: https, and a host that is named there."""
    shown, (scheme, _, rest) = plain_line(url, 80), url.partition("://")
    host = re.split(r"[/?#\\]", rest)[0]
    if scheme.lower() != "https" or not host:
        return "high", f"`{shown}` is no https address"
    if re.search(r"[{}%@:]", host):
        return "high", f"the host of `{shown}` is not a plain name"
    risk, reason = judge_host(host)
    sent = f"it is sent to `{plain_line(host, 80)}`, by code that checks each parameter"
    return risk, sent if risk == "low" else reason


def judge_path(path: str) -> tuple[Risk, str] | None:
    """Judges a path or pattern relative to the home; None where nothing speaks against it."""
    shown = plain_line(path, 80)
    if path.startswith(("/", "~", "\\")) or re.match(r"[A-Za-z]:", path) or ".." in re.split(r"[/\\]", path):
        return "high", f"path `{shown}` leads out of the home"
    if path.strip("./") in ("", "*", "**", "**/*"):
        return "medium", f"path `{shown}` is the whole home"
    try:
        PathRules(deny=ALWAYS_DENIED).check(_STARS_AT_END.sub("", path.removeprefix("./")) or "x")
    except PathRefused as error:
        risk: Risk = "high" if error.reason == "denied" else "medium"
        return risk, f"path `{shown}` is one that no agent may read"
    return None

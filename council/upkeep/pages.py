"""The decision pages that lie in a home, as far as their front matter tells whose they are."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from council.settings import Home

_MOST = 100_000
_HEAD_BYTES = 8_192
_RUN = re.compile(r'^id: "([0-9]{8}-[0-9]{6}-[0-9a-z]{8})"$', re.MULTILINE)
_AUDIT_HEAD = re.compile(r'^audit_head: "([0-9]{1,18}:[0-9a-f]{64})"$', re.MULTILINE)


@dataclass(frozen=True)
class PageHead:
    """`audit_head`: the end of the audit's chain just before the run's commit; empty where the page has none."""

    path: str
    run_id: str
    audit_head: str


def pages_in(home: Home) -> Iterator[PageHead]:
    """Every page below `artifacts/` that says whose it is; a file that cannot be read says nothing."""
    for path in islice(sorted(home.artifacts.rglob("*.md")), _MOST):
        try:
            with path.open("rb") as stream:
                text = stream.read(_HEAD_BYTES).decode("utf-8", "replace")
        except OSError:
            continue
        head = text.partition("\n---\n")[0] if text.startswith("---\n") else ""
        run, noted = _RUN.search(head), _AUDIT_HEAD.search(head)
        if run is not None:
            yield PageHead(path.relative_to(home.root).as_posix(), run[1], noted[1] if noted is not None else "")

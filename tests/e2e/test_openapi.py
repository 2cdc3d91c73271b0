"""The served OpenAPI against the server itself: schemathesis sends what it allows and what it forbids, for under a minute."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.harness import TIMEOUT_S, environment
from tests.world_client import answers, serving, world_home

BUDGET_S = 40
# A key that was used for another body is 422, and two of the bodies that are sent in one round may have the same key.
CONFIG = """
[[operations]]
include-method = "POST"
include-path-regex = "/v1/world/(actions|mechanisms/.*)$"
checks.positive_data_acceptance.expected-statuses = ["2xx", 401, 403, 404, 409, 422, 429]
"""


def test_every_answer_is_one_that_the_openapi_describes(tmp_path: Path) -> None:
    with serving(world_home(tmp_path / "home", members=6, land="6x6", pace="2")) as served:
        key = served.register().key
        routes = sum(map(len, served.get("/openapi.json")["paths"].values()))
        (tmp_path / "schemathesis.toml").write_text(CONFIG)
        words = [
            *("run", f"{served.url}/openapi.json", "--header", f"X-API-Key: {key}", "--seed", "1"),
            *("--phases", "coverage,fuzzing", "--max-examples", "20", "--max-time", str(BUDGET_S)),
            *("--request-timeout", "10", "--generation-database", "none"),
        ]
        done = subprocess.run(
            [sys.executable, "-m", "schemathesis.cli", *words],
            cwd=tmp_path,
            env=environment(),
            capture_output=True,
            text=True,
            timeout=BUDGET_S + TIMEOUT_S,
        )
        assert done.returncode == 0, done.stdout
        assert f"Tested: {routes}\n" in done.stdout
        assert answers(served.url)
    assert "Traceback" not in served.daemon.stderr

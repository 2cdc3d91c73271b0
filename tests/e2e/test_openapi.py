"""The served OpenAPI against the server itself: schemathesis sends what it allows and forbids, as a player and as the steward."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from tests.harness import TIMEOUT_S, environment, run_cli
from tests.world_client import answers, serving, world_home

BUDGET_S = 20
# A key that was used for another body is 422, and two of the bodies that are sent in one round may have the same key.
CONFIG = """
[[operations]]
include-method = "POST"
include-path-regex = "/v1/world/(actions|mechanisms/.*)$"
checks.positive_data_acceptance.expected-statuses = ["2xx", 401, 403, 404, 409, 422, 429]
"""


PLAYERS = r"^/(health|\.well-known|v1/(agents|world))"
PEOPLE = r"^/v1/(me|commands|runs|plans|ask|specialists|workspace|cortex|audit|council/(status|agents))"  # `events` does not end


def test_every_answer_is_one_that_the_openapi_describes(tmp_path: Path) -> None:
    with serving(world_home(tmp_path / "home", members=6, land="6x6", pace="2")) as served:
        paths = served.get("/openapi.json")["paths"]
        routes = {
            words: sum(len(paths[path]) for path in paths if re.match(words, path)) for words in (PLAYERS, PEOPLE)
        }
        assert sum(routes.values()) == sum(map(len, paths.values())) - 1
        (tmp_path / "schemathesis.toml").write_text(CONFIG)
        steward = run_cli("keys", "add", cwd=served.home).stdout.strip()
        # Of people it is asked if each answer is foreseen. That all is refused without a key is asked of each route elsewhere.
        for words, key, more in (
            (PLAYERS, served.register().key, ()),
            (PEOPLE, steward, ("--checks", "not_a_server_error,status_code_conformance,response_schema_conformance")),
        ):
            told = [
                *("run", f"{served.url}/openapi.json", "--header", f"X-API-Key: {key}", "--seed", "1"),
                *("--phases", "coverage,fuzzing", "--max-examples", "20", "--max-time", str(BUDGET_S)),
                *("--request-timeout", "10", "--generation-database", "none", "--include-path-regex", words, *more),
            ]
            done = subprocess.run(
                [sys.executable, "-m", "schemathesis.cli", *told],
                cwd=tmp_path,
                env=environment(),
                capture_output=True,
                text=True,
                timeout=BUDGET_S + TIMEOUT_S,
            )
            assert done.returncode == 0, done.stdout
            assert f"Tested: {routes[words]}\n" in done.stdout
        assert answers(served.url)
    assert [line for line in served.daemon.stderr.splitlines() if "Traceback" in line] == []

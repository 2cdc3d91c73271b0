"""The served OpenAPI against the server itself: schemathesis sends what it allows and forbids, as a player and as the steward."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx2

from tests.harness import environment, run_cli
from tests.world_client import answers, serving, world_home

EXAMPLES = 2  # of each operation, beside those that cover its description: a count ends the test, and no time
TIMEOUT_S = 600  # a defect's
# A body that is too large is 413, whatever else it is. A key that was used for another body is 422, and two of the bodies that
# are sent in one round may have the same key. Every fault of a command is a matter of tests without a server: here both routes
# that take one get generated ones.
CONFIG = """
[checks]
negative_data_rejection.expected-statuses = [400, 401, 403, 404, 406, 413, 422, 428, "5xx"]
[[operations]]
include-method = "POST"
include-path-regex = "/v1/world/(actions|mechanisms/.*)$"
checks.positive_data_acceptance.expected-statuses = ["2xx", 401, 403, 404, 409, 422, 429]
[[operations]]
include-path-regex = "/v1/commands(/validate)?$"
include-method = "POST"
phases.coverage.enabled = false
"""
# Of people it is asked what their bodies may be. What they may not, fault by fault, and all other methods are three times as
# many requests; generated bodies have faults, too.
PEOPLES = """
[phases.coverage]
unexpected-methods = []
generation.mode = "positive"
"""


STREAMS = (
    "/v1/world/events/stream",
    "/v1/council/events",
)  # they do not end: their words are read in tests of their own
PLAYERS = r"^/(health|\.well-known|v1/(agents|world(?!/events/stream)))"
PEOPLE = r"^/v1/(me|commands|runs|plans|ask|specialists|workspace|cortex|audit|council/(status|agents))"
CHECKS = "not_a_server_error,status_code_conformance,response_schema_conformance"


def without_cookies(described: dict[str, Any]) -> dict[str, Any]:
    """The description for a program. One that sent a session would be a page of another site, and refused without a look."""
    for path in described["paths"].values():
        for operation in path.values():
            operation["security"] = [ways for ways in operation.get("security", []) if "Session" not in ways]
    del described["components"]["securitySchemes"]["Session"]
    return described


def test_every_answer_is_one_that_the_openapi_describes(tmp_path: Path) -> None:
    with serving(world_home(tmp_path / "home", members=6, land="6x6", pace="2")) as served:
        described = served.get("/openapi.json")
        paths = described["paths"]
        routes = {
            words: sum(len(paths[path]) for path in paths if re.match(words, path)) for words in (PLAYERS, PEOPLE)
        }
        assert sum(routes.values()) == sum(map(len, paths.values())) - len(STREAMS)
        refused = httpx2.get(f"{served.url}{STREAMS[0]}", headers={"Last-Event-ID": "-1"})
        assert refused.status_code == 422
        assert "422" in paths[STREAMS[0]]["get"]["responses"]
        (tmp_path / "openapi.json").write_text(json.dumps(without_cookies(described)))
        steward = run_cli("keys", "add", cwd=served.home).stdout.strip()
        # Of people it is asked if each answer is foreseen. That all is refused without a key is asked of each route elsewhere.
        for words, key, settings, more in (
            (PLAYERS, served.register().key, CONFIG, ()),
            (PEOPLE, steward, PEOPLES + CONFIG, ("--checks", CHECKS)),
        ):
            (tmp_path / "schemathesis.toml").write_text(settings)
            told = [
                *("run", "openapi.json", "--url", served.url, "--header", f"X-API-Key: {key}", "--seed", "1"),
                *("--phases", "coverage,fuzzing", "--max-examples", str(EXAMPLES)),
                *("--request-timeout", "10", "--generation-database", "none", "--include-path-regex", words, *more),
            ]
            done = subprocess.run(
                [sys.executable, "-m", "schemathesis.cli", *told],
                cwd=tmp_path,
                env=environment(),
                capture_output=True,
                text=True,
                timeout=TIMEOUT_S,
            )
            assert done.returncode == 0, done.stdout
            assert f"Tested: {routes[words]}\n" in done.stdout
            refused_alone = done.stdout.partition("returned only 401/403")[2].partition("\n\n💡")[0]
            assert "- POST" not in refused_alone, "what is sent reaches its route"
        assert answers(served.url)
    assert [line for line in served.daemon.stderr.splitlines() if "Traceback" in line] == []

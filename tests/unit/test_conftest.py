from __future__ import annotations

import os
from pathlib import Path

import pytest

pytest_plugins = ["pytester"]

CONFTEST = Path(__file__).parents[1] / "conftest.py"


@pytest.fixture
def run_with_service(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    monkeypatch.setenv("XDG_CONFIG_HOME", os.environ["XDG_CONFIG_HOME"])  # the conftest below sets its own, here
    pytester.makeconftest(CONFTEST.read_text())
    pytester.makepyfile(
        test_absent="""
            def test_needs_it(require_service):
                require_service("docker", False, "start the daemon")
        """,
        test_present="""
            def test_has_it(require_service):
                require_service("docker", True, "start the daemon")
        """,
    )
    return pytester


def test_an_absent_service_is_a_skip_that_says_how_to_have_it(
    run_with_service: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("COUNCIL_TEST_NO_SKIP", raising=False)
    result = run_with_service.runpytest("-rs", "-p", "no:asyncio")
    result.assert_outcomes(passed=1, skipped=1)
    result.stdout.fnmatch_lines(["*docker absent: start the daemon*"])


def test_a_skip_of_any_kind_is_a_failure_where_skips_are_forbidden(
    run_with_service: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_with_service.makepyfile(
        test_mark="""
            import pytest
            @pytest.mark.skipif(True, reason="never here")
            def test_marked(): ...
        """,
        test_module="import pytest; pytest.skip('not at all', allow_module_level=True)",
    )
    monkeypatch.delenv("COUNCIL_TEST_NO_SKIP", raising=False)
    assert run_with_service.runpytest("-p", "no:asyncio").ret == pytest.ExitCode.OK
    monkeypatch.setenv("COUNCIL_TEST_NO_SKIP", "1")
    result = run_with_service.runpytest("-p", "no:asyncio")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["3 skipped, and COUNCIL_TEST_NO_SKIP=1 makes that a failure."])

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace

import pytest

from council.keys.key_sources import keys_folder
from tests import conftest

pytest_plugins = ["pytester"]

CONFTEST = Path(__file__).parents[1] / "conftest.py"


@pytest.fixture
def run_with_service(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    for name in ("XDG_CONFIG_HOME", "SSL_CERT_FILE"):  # the conftest below sets its own, here
        monkeypatch.setenv(name, os.environ[name])
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


def test_each_worker_has_an_equal_part_that_begins_with_files_of_few_tests() -> None:
    counts = {"a_many.py": 110, "b_story.py": 1, "c_some.py": 20, "d_story.py": 1, "e_some.py": 20}
    items = [SimpleNamespace(path=path, number=number) for path, count in counts.items() for number in range(count)]
    dealt = list(items)
    conftest.pytest_collection_modifyitems(SimpleNamespace(workerinput={"workercount": 2}), dealt)
    assert [dealt[0].path, dealt[76].path] == ["b_story.py", "d_story.py"]
    assert [dealt[1].path, dealt[77].path] == ["c_some.py", "e_some.py"]
    assert {item.path for item in dealt[21:76]} == {"a_many.py"}
    assert sorted(map(id, dealt)) == sorted(map(id, items))
    alone = list(items)
    conftest.pytest_collection_modifyitems(SimpleNamespace(), alone)
    assert alone == items


def test_keys_of_tests_lie_apart_from_those_of_the_user_also_without_an_environment() -> None:
    for environ in ({}, os.environ):
        assert keys_folder(environ).is_relative_to(os.environ["XDG_CONFIG_HOME"])

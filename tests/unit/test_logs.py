from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterator

import pytest

from council.logs import configure, log_context
from council.redaction import Redactor, Secret

KEY = 'top"secret value'
REDACTOR = Redactor([Secret(KEY)])


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def logging_as_before() -> Iterator[None]:
    root, council = logging.getLogger(), logging.getLogger("council")
    level = council.level
    yield
    for added in [handler for handler in root.handlers if type(handler).__module__ == "council.logs"]:
        root.removeHandler(added)
    council.setLevel(level)


def lines(stream: io.StringIO) -> list[dict[str, object]]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def test_off_a_terminal_each_record_is_one_json_line() -> None:
    stream = io.StringIO()
    configure("info", "auto", REDACTOR, stream)
    logging.getLogger("council.engine").info("two\nlines %d", 7)
    (line,) = lines(stream)
    assert str(line.pop("time")).endswith("Z")
    assert line == {"level": "info", "logger": "council.engine", "message": "two\nlines 7"}


def test_on_a_terminal_each_record_is_a_line_for_people() -> None:
    stream = Terminal()
    configure("info", "auto", REDACTOR, stream)
    with log_context(run_id="r1", round=2):
        logging.getLogger("council.engine").warning("slow")
    assert stream.getvalue()[8:] == "Z warning council.engine [run_id=r1 round=2]: slow\n"


def test_terminal_escapes_in_a_message_are_shown_and_not_obeyed() -> None:
    stream = Terminal()
    configure("info", "human", REDACTOR, stream)
    logging.getLogger("council").warning("a\x1b[2Jb\nc")
    assert stream.getvalue().endswith(": a\\x1b[2Jb\n    c\n")


def test_the_context_of_run_agent_and_round_is_inherited_and_ends() -> None:
    stream = io.StringIO()
    configure("info", "json", REDACTOR, stream)
    logger = logging.getLogger("council.x")
    with log_context(run_id="r1"), log_context(agent="auditor", round=1):
        logger.info("inside")
    logger.info("outside")
    inside, outside = lines(stream)
    assert (inside["run_id"], inside["agent"], inside["round"]) == ("r1", "auditor", 1)
    assert outside.keys() == {"time", "level", "logger", "message"}


@pytest.mark.parametrize("format", ["human", "json"])
def test_secrets_are_removed_from_message_arguments_traceback_and_stack(format: str) -> None:
    stream = io.StringIO()
    configure("info", format, REDACTOR, stream)
    logger = logging.getLogger("council.x")
    logger.info(f"message {KEY}")
    logger.info("arguments %s %r", KEY, {"k": KEY})
    try:
        raise ValueError(KEY)
    except ValueError:
        logger.exception("failed", stack_info=True)
    text = stream.getvalue()
    assert "secret value" not in text
    assert text.count("[secret]") >= 4
    assert "ValueError" in text


def test_arguments_that_do_not_fit_their_message_are_logged_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.StringIO()
    with monkeypatch.context() as patch:
        patch.setattr(logging.getLogger(), "handlers", [])  # pytest's own would raise
        configure("info", "json", REDACTOR, stream)
        logging.getLogger("council.x").info("%d", KEY)
    (line,) = lines(stream)
    assert "'%d' %" in str(line["message"])
    assert "secret value" not in str(line["message"])


def test_records_below_the_level_are_dropped() -> None:
    stream = io.StringIO()
    configure("warning", "json", REDACTOR, stream)
    logging.getLogger("council.x").info("too quiet")
    logging.getLogger("council.x").warning("loud")
    assert [line["message"] for line in lines(stream)] == ["loud"]


def test_a_warning_of_a_library_takes_the_same_way() -> None:
    stream = io.StringIO()
    configure("info", "json", REDACTOR, stream)
    logging.getLogger("somebody.else").warning("url with %s", KEY)
    assert [line["message"] for line in lines(stream)] == ["url with [secret]"]


def test_configuring_again_replaces_the_first_stream() -> None:
    first, second = io.StringIO(), io.StringIO()
    configure("info", "json", REDACTOR, first)
    configure("info", "json", REDACTOR, second)
    logging.getLogger("council").warning("once")
    assert (first.getvalue(), len(lines(second))) == ("", 1)

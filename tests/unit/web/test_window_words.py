"""Advice on a page: what a person can do there stands in the place of a command."""

from __future__ import annotations

import pytest

from council.web.window_words import in_the_window, sentence


@pytest.mark.parametrize(
    ("told", "here"),
    [
        ("`council plans list` shows them", "the page Plans shows them"),
        ("`council plans confirm 20261123-101010-abcdefgh` confirms it", "Confirm on its card confirms it"),
        ("`council plans --user ada confirm p` confirms it", "Confirm on its card confirms it"),
        ("set `user: ada`, or `--user ada` behind `council plans`", "ada alone decides it"),
        ("answer it, or `council cancel r`", "answer it, or Cancel on the run’s page"),
        ("I have asked. `council status` shows it.", "I have asked. The page Now shows it."),
        ("It waits.\n\n`council plans` shows it.", "It waits.\n\nThe page Plans shows it."),
        ("`council vault set key --role post --user ada`", "its field on the page Specialists"),
        ("`council specialists promote post` drafts it", "Promote on its page under Specialists drafts it"),
        ("draft it again; `council audit verify` says more", "draft it again; the page House, Audit says more"),
        ("`council resume r --accept-drift` continues", "`council resume r --accept-drift` continues"),
        ("`council retry r --from plan` asks again", "Retry from the plan on the run’s page asks again"),
        ("`council retry r --from design/1` asks again", "`council retry r --from design/1` asks again"),
        ("see `council agents list`", "see the page House, Agents"),
        ("`council repair` upgrades it", "`council repair` upgrades it"),
        ("the council plans it; `needs.md` says why", "the council plans it; `needs.md` says why"),
    ],
)
def test_a_command_becomes_the_page_or_button_that_does_the_same_where_there_is_one(told: str, here: str) -> None:
    assert in_the_window(told) == here


@pytest.mark.parametrize(
    ("told", "here"),
    [
        ("no run matches 'x'.", "No run matches 'x'."),
        ("`council plans` lists them", "The page Plans lists them."),
        ("needs.md: there is no such file", "needs.md: there is no such file."),
        ("max_rounds is too small", "max_rounds is too small."),
        ("`chmod 600 f`", "`chmod 600 f`."),
        ("Is it there?", "Is it there?"),
    ],
)
def test_a_sentence_of_its_own_begins_with_a_capital_letter_but_no_name_of_a_file_does(told: str, here: str) -> None:
    assert sentence(told) == here

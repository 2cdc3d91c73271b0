"""Council's own words in the languages that it vouches for."""

from __future__ import annotations

import re

import pytest

from council.agents.manifest import load_personas
from council.conductor.stock_replies import MOMENTS
from council.settings import builtin_personas_dir
from council.turns.bench import wording
from council.workspace.functions import ACTIONS
from council.workspace.staff import STAFF

LANGUAGES = ("de", "fr", "es", "bg")
KEPT = re.compile(r"\{\w+\}|`[^`]+`")  # values and commands


@pytest.mark.parametrize("language", LANGUAGES)
def test_each_language_has_all_words_with_the_same_values_and_commands(language: str) -> None:
    said = wording(language)
    assert said.keys() == wording("de").keys()
    for english, words in said.items():
        assert sorted(KEPT.findall(words)) == sorted(KEPT.findall(english)), english


@pytest.mark.parametrize("language", LANGUAGES)
def test_whatever_an_agent_of_the_workspace_can_do_has_its_words(language: str) -> None:
    agents = [agent for agent in load_personas(builtin_personas_dir()).values() if agent.id in STAFF]
    named = {ACTIONS[tool].description for agent in agents for tool in agent.tools}
    assert named <= wording(language).keys()
    assert {words for moment, words in MOMENTS.items() if moment != "harmful"} <= wording(language).keys()


@pytest.mark.parametrize("language", ["", "en", "en-GB", "sv", "nonsense"])
def test_english_and_languages_that_nobody_vouches_for_have_none(language: str) -> None:
    assert wording(language) == {}

"""What stands beside a citation, with the real daemon, the real Gemini client, and a fake server on loopback."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.e2e.test_record import closing, record
from tests.fake_gemini import FakeGemini
from tests.harness import command, drop_command, run_cli

OFFERS = "# Offers\nReceived in November.\n\nThe Kangoo costs 19,900 EUR until 15 December 2026.\nThe Caddy costs 24,500 EUR.\n"


@pytest.fixture
def offers(home: Path) -> Path:
    path = home / "docs" / "offers.md"
    path.parent.mkdir()
    path.write_text(OFFERS)
    return path


def decided(home: Path, env: dict[str, str], fake: FakeGemini, answer: str, document: str = "docs/offers.md") -> str:
    fake.reply = closing(record(answer=answer, claims=[], dissent=[]))
    drop_command(home, command(input_artifacts=[document]))
    done = run_cli("run", "--once", cwd=home, env=env)
    assert done.returncode == 0, done.stderr
    page = (home / "artifacts" / "out.md").read_text()
    assert run_cli("replay", "last", cwd=home).stdout == page
    return page


@pytest.mark.usefixtures("offers")
def test_a_figure_that_the_cited_line_does_not_say_is_marked_on_the_page_in_the_terminal_and_in_the_report(
    home: Path, fake: FakeGemini, env: dict[str, str]
) -> None:
    page = decided(home, env, fake, "The Kangoo costs 21,900 EUR [E1: docs/offers.md:4].")
    assert "costs 21,900 EUR __[not in the cited lines]__ [[E1 docs/offers.md:4](../docs/offers.md#L4)]." in page
    assert "> 1 figure is not in the cited lines; it is marked `[not in the cited lines]`." in page
    assert page.index("marked `[not in the cited lines]`") < page.index("## Decision")
    assert "Figures looked up in the lines cited for them: 1; 1 not there." in page
    shown = run_cli("show", "last", cwd=home).stdout
    assert "21,900 EUR __[not in the cited lines]__ [E1 docs/offers.md:4]." in shown
    assert run_cli("report", "last", "--output", "out.html", cwd=home).returncode == 0
    report = (home / "out.html").read_text()
    assert "21,900 EUR <mark>[not in the cited lines]</mark>" in report
    assert report.index("21,900 EUR <mark>") < report.index("1 figure is not in the cited lines")  # the answer leads
    claim = "The Kangoo costs 21,900 EUR [E1: docs/offers.md:4]."
    page = decided(home, env, fake, f"{claim} Again: {claim}")
    assert page.count("21,900 EUR __[not in the cited lines]__") == 2
    assert page.count("- `21,900 EUR`: not in ") == 1
    assert "> 1 figure is not in the cited lines;" in page
    assert "Figures looked up in the lines cited for them: 1; 1 not there." in page
    assert re.search(
        r'\[<a class="cite" href="#E1">E1<span [^>]*>[^<]*Kangoo[^<]*</span></a>: docs/offers.md:4\]', report
    )


@pytest.mark.usefixtures("offers")
@pytest.mark.parametrize(
    "said",
    [
        "The Kangoo costs 19.900 € [E1 docs/offers.md:4]",
        "The Kangoo costs nineteen thousand nine hundred euros (E1:4)",
        "The Caddy costs 4,600 EUR more [E1, lines 4-5]",
        "The offer ends on 15.12.2026 (see docs/offers.md, line 4)",
        "The Kangoo costs 19,900 EUR (Evidence 1, line 4)",
        "The Kangoo costs 19,900 EUR [E1: /docs/offers.md:4, accessed on 3 May 2026]",
        "The Kangoo costs 19,900 EUR (line 4 of offers.md)",
        "The Kangoo costs 19,900 EUR [offers.md:4](docs/offers.md)",
        "The Kangoo costs 19,900 EUR, as say [the offers](docs/offers.md#L4)",
    ],
)
def test_a_true_figure_in_any_spelling_is_not_marked_and_each_form_of_a_citation_becomes_a_link(
    home: Path, fake: FakeGemini, env: dict[str, str], said: str
) -> None:
    page = decided(home, env, fake, f"{said}.")
    assert re.search(r"## Decision\n\n.* \[\[E1 docs/offers\.md:4(?:-5)?\]\(\.\./docs/offers\.md#L4\)\]\.", page)
    assert "[not in" not in page
    assert "Figures looked up in the lines cited for them: 1; all there." in page


@pytest.mark.usefixtures("offers")
def test_evidence_and_places_that_do_not_exist_are_marked_in_every_form(
    home: Path, fake: FakeGemini, env: dict[str, str]
) -> None:
    page = decided(
        home,
        env,
        fake,
        "It is cheap (E99), and new [E1 docs/gone.md:3], and red [E1:99], or old [E1, line 0], or ours [gone.csv], as in"
        " [the list](docs/offers.md#L9). Ask (example.com:80).",
    )
    assert "(E99) __[no such evidence]__" in page
    assert "[E1 docs/gone.md:3] __[no such place]__" in page
    assert "[E1:99] __[no such place]__" in page
    assert "[E1, line 0] __[no such place]__" in page
    assert "[gone.csv] __[no such place]__" in page
    assert "the list [docs/offers.md:9] __[no such place]__" in page
    assert "Ask (example.com:80)." in page


@pytest.mark.usefixtures("offers")
def test_a_month_a_figure_in_code_and_a_bound_are_looked_up_as_other_figures_are(
    home: Path, fake: FakeGemini, env: dict[str, str]
) -> None:
    right = "The offer ends in December, at `19.900` EUR, et ne dépasse pas _20 500 €_ [E1:4]."
    month = "June" if datetime.now(UTC).month < 6 or datetime.now(UTC).month > 7 else "March"  # the task names the day
    wrong = f"The offer ends in {month}, at `21.900` EUR, et ne dépasse pas _18 500 €_ [E1:4]."
    page = decided(home, env, fake, f"{right} {wrong}")
    assert "ends in December, at `19.900` EUR, et ne dépasse pas _20 500 €_ [[E1 docs/offers.md:4]" in page
    mark = "__[not in the cited lines]__"
    assert f"ends in {month} {mark}, at `21.900` EUR {mark}, et ne dépasse pas _18 500 €_ {mark} [[E1" in page
    assert "Figures looked up in the lines cited for them: 6; 3 not there." in page


def test_a_past_decision_verifies_no_figure_and_the_page_says_so(
    home: Path, offers: Path, fake: FakeGemini, env: dict[str, str]
) -> None:
    decided(home, env, fake, "Spend 31,400 EUR.")
    (home / "artifacts" / "out.md").rename(home / "artifacts" / "old.md")
    line = (home / "artifacts" / "old.md").read_text().splitlines().index("Spend 31,400 EUR.") + 1
    said = f"We spend 31,400 EUR [E1: artifacts/old.md:{line}]."
    page = decided(home, env, fake, said, "artifacts/old.md")
    assert "31,400 EUR __[only in the council's own words]__" in page
    assert (
        "> 1 figure is only in a past decision or the memory of the council, which are not sources; it is marked"
        in page
    )
    assert "not in the cited lines" not in page


@pytest.mark.parametrize(
    ("said", "wrong"),
    [
        ("Notice is 3 months, the hall costs 3,750 EUR a quarter, and 84 % of the 37 voted yes [E1].", []),
        ("Notice is 4 months, the hall costs 1,250 EUR a year, and two thirds voted yes [E1].", [
            "4 months", "1,250 EUR", "two thirds",
        ]),
        ("It comes on the 3rd working day, lasts 1½ hours, and costs 900 EUR, 15,000 EUR a year for the hall [E1].", []),
        ("It comes on the 4th day, lasts 2½ hours, and costs 900 USD [E1].", ["4th day", "2½ hours", "900 USD"]),
    ],
)  # fmt: skip
def test_facts_without_a_sentence_are_read_with_their_periods_and_shares(
    home: Path, offers: Path, fake: FakeGemini, env: dict[str, str], said: str, wrong: list[str]
) -> None:
    offers.write_text(
        "Kündigungsfrist: drei Monate\nHallenmiete: 1.250 EUR im Monat\nStimmen: 37 abgegeben, 31 Ja, 6 Nein\n"
        "Lieferung am dritten Werktag\nDauer: 1,5 Stunden\n\n| Posten | Preis in EUR |\n|---|---|\n| Pult | 900 |\n"
    )
    page = decided(home, env, fake, said)
    assert re.findall(r"(\w[\w,]* \w+) __\[not in the cited lines\]__", page) == wrong


@pytest.mark.usefixtures("offers")
@pytest.mark.parametrize(
    "source",
    [
        "Source: [E1: docs/offers.md:4]",
        "**Source:** E1, line 4.",
        "_(see E1, line 4)_",
        "`[E1: docs/offers.md:4]`",
        "\n- Source: [E1:4]",
    ],
)
def test_a_source_behind_the_sentence_is_held_against_its_figures_and_becomes_a_link(
    home: Path, fake: FakeGemini, env: dict[str, str], source: str
) -> None:
    page = decided(home, env, fake, f"The Kangoo costs 21,900 EUR. {source}")
    assert "costs 21,900 EUR __[not in the cited lines]__." in page
    assert "[[E1 docs/offers.md:4](../docs/offers.md#L4)]" in page


@pytest.mark.usefixtures("offers")
def test_a_place_in_prose_is_read_with_its_id(home: Path, fake: FakeGemini, env: dict[str, str]) -> None:
    page = decided(home, env, fake, "According to E1, line 5, it costs 19,900 EUR. It is cheap, says E1, line 40.")
    assert (
        "According to [[E1 docs/offers.md:5](../docs/offers.md#L5)], it costs 19,900 EUR __[not in the cited lines]__"
        in page
    )
    assert "says E1, line 40 __[no such place]__." in page


@pytest.mark.usefixtures("offers")
def test_the_page_names_the_places_that_a_figure_was_looked_up_at(
    home: Path, fake: FakeGemini, env: dict[str, str]
) -> None:
    said = "The Caddy costs 19,900 EUR [E1:5], compared with 24,500 EUR today [E1:4]. The e-NV costs 9,000 EUR [E1] [E1:5]."
    page = decided(home, env, fake, said)
    assert "`19,900 EUR`: not in [[E1 docs/offers.md:5](../docs/offers.md#L5)]." in page
    assert "`24,500 EUR`: not in [[E1 docs/offers.md:4](../docs/offers.md#L4)]." in page
    assert "`9,000 EUR`: not in [[E1](../docs/offers.md#L1)]." in page

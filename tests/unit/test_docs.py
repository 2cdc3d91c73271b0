"""README.md and docs/: every link leads to a file and a heading that exist, and the README's command is one.
Docstrings begin with their subject."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from council.app import commands_of
from council.commands.models import dump
from council.commands.parsing import parse_command
from council.desk.all_systems import house

REPOSITORY = Path(__file__).parents[2]
README = REPOSITORY / "README.md"
PAGES = [README, *sorted(REPOSITORY.glob("docs/*.md"))]


def prose(page: Path) -> str:
    """The text without fences and code, which may show links of other pages."""
    text = re.sub(r"^(`{3,}).*?^\1$", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    return re.sub(r"`[^`\n]+`", lambda code: code[0].strip("`").translate(str.maketrans("", "", "[]()#")), text)


def anchors(page: Path) -> set[str]:
    """The names that a viewer gives to the headings."""
    headings = re.findall(r"^#+ (.+)$", prose(page), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_link_leads_somewhere(page: Path) -> None:
    links = [link for link in re.findall(r"(?:\]\(|src=\")([^)\"\s]+)", prose(page)) if "://" not in link]
    found = [(link, page.parent / link.partition("#")[0] if link[0] != "#" else page) for link in links]
    assert [link for link, target in found if not target.exists()] == []
    named = [(link, target) for link, target in found if "#" in link and target.suffix == ".md" and "#L" not in link]
    assert [link for link, target in named if link.partition("#")[2] not in anchors(target)] == []


def test_every_page_is_reached_from_the_readme() -> None:
    reached: set[Path] = set()
    left = {README}
    while left:
        page = left.pop()
        reached.add(page)
        targets = {(page.parent / link).resolve() for link in re.findall(r"\]\(([^)\s#]+\.md)", prose(page))}
        left |= {target for target in targets if target in PAGES} - reached
    assert [page.name for page in PAGES if page not in reached] == []


def test_the_command_of_the_readme_is_one() -> None:
    example = README.read_text(encoding="utf-8").partition("```json\n")[2].partition("```")[0]
    command = dump(parse_command(commands_of(house()), "storage.json", example.encode()))
    assert command["task_description"] == "Which storage engine should the archive use?"


def test_no_docstring_begins_with_a_question() -> None:
    asks = re.compile(r'"""(?:What|Who|Whose|Which|How|Where|When|Whether|Why)\b[^\n]*')
    sources = sorted((REPOSITORY / "council").rglob("*.py"))
    assert [found for source in sources for found in asks.findall(source.read_text(encoding="utf-8"))] == []

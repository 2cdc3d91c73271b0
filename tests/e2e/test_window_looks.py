"""Every page of the window as people see it: empty, with one and with many, in both themes, on a phone and on a desk.

The pages are those of the router; nothing may be cut off or hinder a reader. Where COUNCIL_TEST_PICTURES names a folder,
each look is a picture there.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from tests.browser import NARROW, WIDE, Browsing
from tests.fake_gemini import FakeGemini
from tests.harness import make_home
from tests.household import furnish, talk, work
from tests.site import NO_PAGE, site, ways

SETTINGS = "http_requests_per_minute = 1000000\nsettle_s = 0.5\nday_max_calls = 1000\n"
_PASSING = re.compile(r"[\d.,:]+|\b(min|s|MiB|GiB|KiB)\b")  # figures may go on while one looks
_MANY = 60
# Lists, not tables of figures: those of a run's report, and of the world's rounds.
_CUT = """() => [...document.querySelectorAll('.scroll[aria-label]:not([aria-label=Rounds])')]
  .filter(one => one.scrollWidth > one.clientWidth).map(one => one.getAttribute('aria-label'))"""
_PICTURES = os.environ.get("COUNCIL_TEST_PICTURES", "")
LOOKS = ((WIDE, False), (WIDE, True), (NARROW, False), (NARROW, True))  # so wide, in the dark


@pytest.mark.parametrize("count", [0, 1, _MANY])
def test_every_page_is_whole_and_readable(
    browser: Browser, tmp_path: Path, count: int, fake: FakeGemini, env: dict[str, str]
) -> None:
    here = site(make_home(tmp_path / "home", settings=SETTINGS), env)
    ids = furnish(here.home, count) if count else {}
    user = "ada" if count else "steward"
    if count:
        here.cli("users", "roles", user, "--grant", "administrator")
    faults: list[str] = []
    with here.serving() as daemon:
        if count:
            ids = talk(here, daemon, fake, count // 10, ids)
            ids = work(here, daemon, min(count, 30), ids)
        paths = sorted(
            {way.path for way in ways(here.home, ids) if way.method == "GET" and not NO_PAGE.search(way.path)}
        )
        link = here.link(user)
        with Browsing(browser, here.url, axe=True) as seeing, Browsing(browser, here.url, scripts=False) as plain:
            seeing.sign_in(link)
            plain.sign_in_as(seeing)
            assert count == 0 or not [path for path in paths if "{" in path], "each page is looked at"
            looks = LOOKS if count == 1 else LOOKS[::3]  # a theme changes colours alone
            for path in paths:
                if "{" in path or path == "/":  # there is nothing yet of which it would be the page; `/` leads to Now
                    continue
                page = seeing.open(path)
                for width, dark in looks:
                    seeing.look(width, dark)
                    kind = f"{'dark' if dark else 'light'}-{width}"
                    if _PICTURES:
                        seeing.photograph(Path(_PICTURES, f"{count}{path.replace('/', '-')}-{kind}.png"))
                    is_alike = count > 1 and not page.locator("[rel=next]").count()  # as with one
                    if width == NARROW and not is_alike:
                        seen_in_light = dark and (width, False) in looks
                        rules = ["color-contrast"] if seen_in_light else []
                        faults += [f"{path} {kind}: {one}" for one in seeing.hindrances(*rules)]
                    faults += [f"{path} {kind}: {one}" for one in seeing.sideways()]
                    if width == NARROW:
                        faults += [f"{path} {kind}: {one} is cut off" for one in page.evaluate(_CUT)]
                if count != 1:
                    continue
                seeing.look(WIDE, False)  # as the other one is
                # The council goes on meanwhile: what a page says may change between the two looks, but not each time.
                told = (
                    (_PASSING.sub("", plain.open(path).inner_text("main")), _PASSING.sub("", page.inner_text("main")))
                    for _ in range(5)
                )
                faults += [] if any(without == with_ for without, with_ in told) else [f"{path}: scripts"]
            assert len(paths) > 15
            assert faults == [], "\n".join(faults)
            assert seeing.complaints + plain.complaints == []

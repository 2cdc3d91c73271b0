"""Debian's Chromium for tests of the window: a person's browser, whose page tells all that it should not have met.

`Browsing` is one person with cookies of their own. Its `complaints` hold what a listener in the page heard, what the content
policy reported, what went to another address, scripts that failed and answers above 499. They are empty in a sound window.
"""

from __future__ import annotations

import base64
import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from playwright.sync_api import Browser, Error, Page, Request, expect, sync_playwright

# The shell has the pages alone, without a browser's windows around them, for two thirds of the work.
_SHELL, _WHOLE = Path("/usr/lib/chromium/chromium-headless-shell"), Path("/usr/bin/chromium")
CHROMIUM = str(_SHELL if _SHELL.exists() else _WHOLE)
AXE = Path(__file__).with_name("axe") / "axe.min.js"
WIDE, NARROW = 1_440, 390  # pixels: a desk's screen and a phone's
# One process for all pages of a site: each page in one of its own, and one in advance for the next, is a tenth of the work.
_FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--renderer-process-limit=1",
)  # fmt: skip
_LISTENER = (
    "addEventListener('securitypolicyviolation', seen => heard(`policy: ${seen.violatedDirective} ${seen.sample}`))"
)
_MOST_TABS = 250
_MOST_PIXELS = 1_600  # of a picture's height
_FOCUSED = """kind => {
  const one = document.activeElement;
  if (!one || one === document.body) return [false, ''];
  const named = one.labels && one.labels.length ? [...one.labels].map(label => label.innerText).join(' ') : '';
  return [one.matches(kind), [one.getAttribute('aria-label'), named, one.innerText, one.placeholder].filter(Boolean).join(' | ')];
}"""
_SIDEWAYS = """() => {
  const page = document.scrollingElement, width = page.clientWidth;
  const edge = document.querySelector('.bar nav')?.getBoundingClientRect().right;
  const hidden = [...document.querySelectorAll('.bar nav a')].filter(one => one.getBoundingClientRect().right > edge + 1);
  if (hidden.length) return hidden.map(one => `the entry ${one.innerText} is out of sight`);
  if (page.scrollWidth <= width) return [];
  return [`${page.scrollWidth} px of ${width} px`, ...[...document.body.querySelectorAll('*')]
    .filter(one => one.getBoundingClientRect().right > width + 1).slice(0, 5)
    .map(one => one.outerHTML.slice(0, 160))];
}"""


@contextlib.contextmanager
def chromium() -> Iterator[Browser]:
    """A browser. NOTE: while it is open a loop runs in this thread, so no test of coroutines may run beside it."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=list(_FLAGS))
        try:
            yield browser
        finally:
            browser.close()


class Browsing:
    """A person at the window under `url`. Without `scripts` JavaScript is off, and the page reports nothing."""

    def __init__(
        self,
        browser: Browser,
        url: str,
        *,
        scripts: bool = True,
        axe: bool = False,
    ) -> None:
        self.url = url
        self.complaints: list[str] = []
        self._context = browser.new_context(
            base_url=url,
            viewport={"width": WIDE, "height": 900},
            reduced_motion="reduce",
            java_script_enabled=scripts,
        )
        self._context.set_default_timeout(30_000)
        if scripts:
            self._context.expose_function("heard", lambda told: self.complaints.append(f"heard: {told}"))
            self._context.add_init_script(_LISTENER)
            if axe:
                self._context.add_init_script(path=AXE)
        self._context.on("request", self._on_request)
        self._context.on("weberror", lambda error: self.complaints.append(f"script: {error.error}"))
        self._context.on("dialog", self._on_dialog)
        self._context.on(
            "response", lambda got: got.status > 499 and self.complaints.append(f"{got.status} of {got.url}")
        )
        self.page: Page = self._context.new_page()

    def __enter__(self) -> Browsing:
        return self

    def __exit__(self, *_: object) -> None:
        self._context.close()

    def _on_request(self, request: Request) -> None:
        if urlsplit(request.url).scheme != "data" and not request.url.startswith(f"{self.url}/"):
            self.complaints.append(f"request: {request.url}")

    def _on_dialog(self, dialog: Any) -> None:
        self.complaints.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    def open(self, path: str) -> Page:
        """The page at `path`, which must be there."""
        answer = self.page.goto(path, wait_until="domcontentloaded")
        assert answer is not None
        assert answer.status == 200, f"{path}: {answer.status} {self.page.inner_text('body')[:300]}"
        return self.page

    def open_behind(self, path: str) -> Page:
        """The page at `path` in a tab that nobody looks at, until its script sets `window.seen`."""
        page = self._context.new_page()
        page.add_init_script("Object.defineProperty(document, 'hidden', {get: () => !window.seen})")
        page.goto(path, wait_until="domcontentloaded")
        return page

    def refused(self, path: str) -> None:
        """Asks for a page that is not for this person: they see that, and nothing of it."""
        answer = self.page.goto(path, wait_until="domcontentloaded")
        assert answer is not None
        assert answer.status in (403, 404), f"{path}: {answer.status} {self.page.inner_text('main')}"

    def sign_in(self, link: str) -> Browsing:
        """Uses a link of `council ui`, by the Enter key."""
        self.open(link)
        expect(self.page.get_by_role("button", name="Sign in")).to_be_focused()
        self.page.keyboard.press("Enter")
        expect(self.page).to_have_url(f"{self.url}/now")
        return self

    def sign_in_as(self, other: Browsing) -> None:
        """Takes over the sign-in of another browser."""
        self._context.add_cookies(other._context.cookies())  # type: ignore[arg-type]

    def look(self, width: int, dark: bool) -> None:
        """Looks at the page through another window: so wide, in the light or the dark."""
        self.page.set_viewport_size({"width": width, "height": 900})
        self.page.emulate_media(color_scheme="dark" if dark else "light")

    def tab_to(self, words: str, kind: str = "*") -> None:
        """Moves the focus by the Tab key alone until it is on an element of this kind (a CSS selector) with these words in
        its name."""
        met = []
        for _ in range(_MOST_TABS):
            self.page.keyboard.press("Tab")
            try:
                fits, named = self.page.evaluate(_FOCUSED, kind)
            except Error:  # the next page comes meanwhile
                self.page.wait_for_load_state("domcontentloaded")
                continue
            met.append(named)
            if fits and words in named:
                return
        raise AssertionError(f"Tab never reaches {words!r}, but {list(dict.fromkeys(met))}")

    def press(self, words: str, kind: str = "button, a, summary", key: str = "Enter") -> None:
        """Tabs to what these words name, and presses it."""
        self.tab_to(words, kind)
        self.page.keyboard.press(key)

    def write(self, words: str, text: str) -> None:
        """Tabs to the field that these words name, and types in the place of what it holds."""
        self.tab_to(words, "input, textarea")
        self.page.keyboard.press("Control+A")
        self.page.keyboard.insert_text(text)

    def photograph(self, path: Path) -> None:
        """A picture of the page, of its upper part where it is very long. NOTE: the browser is asked itself, since it packs a
        picture in half of the time where size does not matter."""
        size: dict[str, int] = self.page.evaluate(
            "() => ({width: innerWidth, height: document.documentElement.scrollHeight})"
        )
        clip = {"x": 0, "y": 0, "width": size["width"], "height": min(size["height"], _MOST_PIXELS), "scale": 1}
        asked = {"format": "png", "optimizeForSpeed": True, "captureBeyondViewport": True, "clip": clip}
        devtools = self._context.new_cdp_session(self.page)
        path.write_bytes(base64.b64decode(devtools.send("Page.captureScreenshot", asked)["data"]))
        devtools.detach()

    def sideways(self) -> list[str]:
        """The parts of the page that reach beyond its right edge. Empty where nothing scrolls sideways."""
        return list(self.page.evaluate(_SIDEWAYS))

    def hindrances(self, *rules: str) -> list[str]:
        """The serious and critical findings of axe-core, of all its rules or of these, with where each stands."""
        only = {"runOnly": list(rules)} if rules else {}
        told = self.page.evaluate("asked => axe.run(asked)", {"resultTypes": ["violations"], **only})
        return [
            f"{found['id']}: {found['help']} {[node['html'][:160] for node in found['nodes'][:3]]}"
            for found in told["violations"]
            if found["impact"] in ("serious", "critical")
        ]

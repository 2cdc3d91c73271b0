"""Makes the README's picture anew, from a real `council demo`: `python docs/make_images.py`.

images/artifact.png is the first screen of the decision page, rendered as a Markdown viewer would. Needs `pip install
mdit-py-plugins pillow` and a Chromium on the PATH. For whoever changes the demo or the page; nothing else imports it,
and no test runs it.

`python docs/make_images.py --page decision.html` also leaves the whole rendered page there, every round unfolded.
"""

from __future__ import annotations

import argparse
import html
import io
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import yaml
from markdown_it import MarkdownIt
from mdit_py_plugins.footnote import footnote_plugin
from PIL import Image

IMAGES = Path(__file__).with_name("images")
_SIZE = (1000, 900)  # CSS pixels
_SCALE = 2
_COLOURS = 128  # text on white needs no more, and the file stays small

_PAGE = """<!doctype html><html lang="en"><meta charset="utf-8"><title>{title}</title><style>
body {{ margin: 0; background: #fff; color: #1f2328; font: 15px/1.5 "Noto Sans", "Liberation Sans", Arial, sans-serif; }}
.frame {{ margin: 16px 18px; border: 1px solid #d1d9e0; border-radius: 8px; overflow: hidden; }}
.file {{ padding: 9px 18px; background: #f6f8fa; border-bottom: 1px solid #d1d9e0; color: #59636e;
  font: 13px/1.5 "DejaVu Sans Mono", "Liberation Mono", monospace; }}
.file b {{ color: #1f2328; }}
article {{ padding: 18px 34px 48px; }}
.facts {{ display: grid; grid-template-columns: repeat(4, auto); gap: 0; margin: 0 0 18px; font-size: 12.5px;
  border: 1px solid #d1d9e0; border-radius: 6px; overflow: hidden; }}
.facts div {{ padding: 3px 12px; min-width: 0; white-space: nowrap; overflow: hidden; text-overflow: ellipsis; }}
.facts span {{ display: block; color: #59636e; font-size: 11px; line-height: 1.35; }}
h1 {{ font-size: 1.75em; line-height: 1.25; margin: 0 0 14px; padding-bottom: .3em; border-bottom: 1px solid #d1d9e0b3; }}
h2 {{ font-size: 1.4em; line-height: 1.25; margin: 22px 0 12px; padding-bottom: .3em; border-bottom: 1px solid #d1d9e0b3; }}
h3 {{ font-size: 1.2em; margin: 22px 0 12px; }}
p, ul, ol, blockquote, table, details {{ margin: 0 0 14px; }}
ul, ol {{ padding-left: 1.7em; }} li + li {{ margin-top: .25em; }} li > p {{ margin: 0; }}
a {{ color: #0969da; text-decoration: none; }}
code {{ padding: .15em .4em; background: #818b981f; border-radius: 6px; font: 85% "DejaVu Sans Mono", monospace; }}
pre {{ padding: 14px; background: #f6f8fa; border-radius: 6px; overflow: auto; }} pre code {{ background: none; padding: 0; }}
blockquote {{ padding: 0 1em; color: #59636e; border-left: .25em solid #d1d9e0; }}
table {{ border-collapse: collapse; }} th, td {{ padding: 6px 13px; border: 1px solid #d1d9e0; }}
sup {{ font-size: 75%; line-height: 0; }} sup a {{ padding-left: 2px; }}
summary {{ margin-bottom: 10px; }}
.fade {{ position: absolute; top: {fade_from}px; left: 0; right: 0; height: 60px;
  background: linear-gradient(#fff0, #fff); }}
.footnotes {{ font-size: 13px; color: #59636e; }} .footnotes-sep {{ border: 0; border-top: 1px solid #d1d9e0; }}
</style><div class="frame"><div class="file">{folder}/<b>{name}</b></div><article>{facts}{body}</article></div>{fade}</html>
"""


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--page", type=Path, help="where to leave the whole page as HTML")
    page: Path | None = arguments.parse_args().page
    IMAGES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as name:
        scratch = Path(name)
        artifact = run_demo(scratch)
        screen = scratch / "screen.html"
        screen.write_text(rendered(artifact, first_screen=True))
        (IMAGES / "artifact.png").write_bytes(smaller(screenshot(screen, scratch)))
        if page is not None:
            page.write_text(rendered(artifact, first_screen=False).replace("<details>", "<details open>"))


def run_demo(folder: Path) -> Path:
    """The page that a demo in this folder leaves."""
    subprocess.run([sys.executable, "-m", "council", "demo"], cwd=folder, stdout=subprocess.DEVNULL, check=True)
    pages = (folder / "council-demo" / "artifacts").glob("*.md")
    (artifact,) = (path for path in pages if path.name != "README.md")
    return artifact


# ── the page ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def rendered(artifact: Path, *, first_screen: bool) -> str:
    """The page as HTML; a first screen fades out where it is cut."""
    _, front, body = artifact.read_text().split("---\n", 2)
    facts = yaml.safe_load(front)
    return _PAGE.format(
        title=html.escape(facts["title"]),
        folder=html.escape(artifact.parent.name),
        name=html.escape(artifact.name),
        facts=_facts_html(facts),
        body=_markdown().render(body),
        fade='<div class="fade"></div>' if first_screen else "",
        fade_from=_SIZE[1] - 60,
    )


def _markdown() -> MarkdownIt:
    markdown = MarkdownIt("commonmark", {"html": True}).enable("table").use(footnote_plugin)

    def caption(self: object, tokens: list, index: int, *_: object) -> str:  # type: ignore[type-arg]
        return str(tokens[index].meta["id"] + 1)  # a plain number, as the common viewers show it

    markdown.add_render_rule("footnote_caption", caption)
    return markdown


def _facts_html(facts: dict[str, object]) -> str:
    """The front matter as viewers show it: names and values, the title left to the heading below."""
    shown = {name: value for name, value in facts.items() if name not in ("title", "tags", "tokens_in", "tokens_out")}
    cells = (
        f"<div><span>{html.escape(name)}</span>{html.escape(_value(value))}</div>" for name, value in shown.items()
    )
    return f'<div class="facts">{"".join(cells)}</div>'


def _value(value: object) -> str:
    text = ", ".join(map(str, value)) if isinstance(value, list) else str(value)
    return f"{text[:24]}…" if re.fullmatch("[0-9a-f]{64}", text) else text


def screenshot(page: Path, scratch: Path) -> bytes:
    picture = scratch / "screen.png"
    flags = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"]
    flags += ["--disable-background-networking", "--disable-component-update", "--hide-scrollbars"]
    flags += [f"--user-data-dir={scratch / 'profile'}", f"--window-size={_SIZE[0]},{_SIZE[1]}"]
    flags += [f"--force-device-scale-factor={_SCALE}", f"--screenshot={picture}", page.as_uri()]
    subprocess.run([_chromium(), *flags], check=True, capture_output=True, timeout=120)
    return picture.read_bytes()


def _chromium() -> str:
    found = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if found is None:
        raise SystemExit("Chromium is not on the PATH: install it, then run this again.")
    return found


def smaller(png: bytes) -> bytes:
    """The same picture with a palette."""
    picture = Image.open(io.BytesIO(png)).convert("RGB").quantize(_COLOURS, dither=Image.Dither.NONE)
    packed = io.BytesIO()
    picture.save(packed, "PNG", optimize=True)
    return packed.getvalue()


if __name__ == "__main__":
    main()

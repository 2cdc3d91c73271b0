"""The smallest SVG that the report needs: elements in numbers and classes, colours by the page's style sheet.

Text goes through ElementTree, which escapes it; nothing here takes markup. A chart's `title` and `desc` are what a screen
reader says of it.
"""

from __future__ import annotations

from xml.etree import ElementTree

from council.safety.untrusted import plain_line

_MAX_LABEL_CHARS = 60
Number = float | int


class Svg:
    """A drawing of `width` × `height` units; `name` is unique on the page."""

    def __init__(self, name: str, width: Number, height: Number, title: str, desc: str) -> None:
        self.width = width
        attributes = {
            "class": "chart",
            "viewBox": f"0 0 {_short(width)} {_short(height)}",
            "width": _short(width),
            "height": _short(height),
            "role": "img",
            "aria-labelledby": f"{name}-title {name}-desc",
        }
        self._root = ElementTree.Element("svg", attributes)
        for tag, text in (("title", title), ("desc", desc)):
            ElementTree.SubElement(self._root, tag, id=f"{name}-{tag}").text = plain_line(text, 2_000)

    def rect(
        self, x: Number, y: Number, width: Number, height: Number, kind: str, hint: str = "", *, radius: Number = 0
    ) -> None:
        values = {"x": x, "y": y, "width": max(0, width), "height": height, "rx": radius}
        self._add("rect", kind, hint, values)

    def line(self, x1: Number, y1: Number, x2: Number, y2: Number, kind: str, hint: str = "") -> None:
        self._add("line", kind, hint, {"x1": x1, "y1": y1, "x2": x2, "y2": y2})

    def circle(self, x: Number, y: Number, radius: Number, kind: str, hint: str = "") -> None:
        self._add("circle", kind, hint, {"cx": x, "cy": y, "r": radius})

    def cross(self, x: Number, y: Number, size: Number, kind: str, hint: str = "") -> None:
        half = size / 2
        left, top, along, back = map(_short, (x - half, y - half, size, -size))
        self.path(f"M{left} {top}l{along} {along}m0 {back}l{back} {along}", kind, hint)

    def path(self, course: str, kind: str, hint: str = "") -> None:
        """`course` is ours alone: the value of `d`."""
        self._add("path", kind, hint, {}).set("d", course)

    def text(self, x: Number, y: Number, text: str, kind: str = "label", *, max_chars: int = _MAX_LABEL_CHARS) -> None:
        """`kind` may hold `end` or `mid` for its anchor."""
        element = self._add("text", kind, "", {"x": x, "y": y})
        element.text = plain_line(text, max_chars)

    def markup(self) -> str:
        """The element, everything in it escaped."""
        return ElementTree.tostring(self._root, encoding="unicode")

    def _add(self, tag: str, kind: str, hint: str, values: dict[str, Number]) -> ElementTree.Element:
        places = {key: _short(value) for key, value in values.items()}
        element = ElementTree.SubElement(self._root, tag, {"class": kind, **places})
        if hint:
            ElementTree.SubElement(element, "title").text = plain_line(hint, 300)
        return element


def _short(value: Number) -> str:
    return f"{value:.1f}".rstrip("0").rstrip(".") if isinstance(value, float) else str(value)

"""Counts the private functions that one caller needs, room by room: `python -m benchmarks.single_use`.

A function is private when its name begins with one underscore. It is single-use when its name stands once outside its
definition. Such a helper makes a reader put a policy together; the bar is 10 % of all functions. Ends with 1 above it.
"""

from __future__ import annotations

import ast
import re
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

PACKAGE = Path(__file__).parents[1] / "council"
BAR = 0.10
_NAME = re.compile(r"\b_[A-Za-z]\w*")


def functions_of(tree: ast.Module) -> Iterator[str]:
    """The names of all functions and methods, nested ones left out: they are no place to look for."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef):
            for child in node.body:
                if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
                    yield child.name


def single_used(text: str, names: list[str]) -> list[str]:
    """Those private ones of `names` that stand in `text` once beside their definitions."""
    counts, defined = Counter(_NAME.findall(text)), Counter(names)
    private = [name for name in defined if name.startswith("_") and not name.startswith("__")]
    return [name for name in private if counts[name] - defined[name] == 1]


def main() -> int:
    """Prints a line for each room, and each helper with `-v`."""
    all_functions: Counter[str] = Counter()
    helpers: dict[str, list[str]] = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        place = path.relative_to(PACKAGE)
        names = list(functions_of(ast.parse(text)))
        all_functions[place.parts[0]] += len(names)
        helpers.setdefault(place.parts[0], []).extend(f"{place}: {name}" for name in single_used(text, names))
    for room, count in sorted(all_functions.items()):
        if count:
            print(f"{room:<14} {len(helpers[room]):>4} of {count:>4}  {len(helpers[room]) / count:>6.1%}")
        if "-v" in sys.argv:
            print("".join(f"    {helper}\n" for helper in helpers[room]), end="")
    total, found = sum(all_functions.values()), sum(map(len, helpers.values()))
    print(f"{'all':<14} {found:>4} of {total:>4}  {found / total:>6.1%}  (bar {BAR:.0%})")
    return int(found > BAR * total)


if __name__ == "__main__":
    sys.exit(main())

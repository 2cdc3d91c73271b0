"""The plain harness: the job's function gets the argument, and what it returns is the answer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def call(function: Callable[[Any], Any], argument: Any) -> Any:
    """The answer of `function`."""
    return function(argument)

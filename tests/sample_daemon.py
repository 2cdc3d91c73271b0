"""`python -m tests.sample_daemon …` is `council …` in a house with one system more: the sample."""

from __future__ import annotations

import sys

from council.app import commands_of
from council.upkeep import house
from tests.sample_system import SAMPLE


def main() -> None:
    house.ALL_SYSTEMS = (*house.ALL_SYSTEMS, SAMPLE)
    house.COMMANDS = commands_of(house.ALL_SYSTEMS)
    sys.argv = ["council", *sys.argv[1:]]
    from council.cli.main import main as council_main

    council_main()


if __name__ == "__main__":
    main()

"""Programs to compare with, each in a virtual environment of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

AUTOGEN = "autogen-agentchat==0.7.5"
_INSTALL_TIMEOUT_S = 600


def autogen_python(scratch: Path) -> str:
    """The interpreter of an environment that holds AutoGen, made in `scratch`; `BENCHMARK_AUTOGEN_PYTHON` names one that is
    there already."""
    ready = os.environ.get("BENCHMARK_AUTOGEN_PYTHON")
    if ready:
        return ready
    python = scratch / "autogen" / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", str(python.parents[1])], check=True, timeout=_INSTALL_TIMEOUT_S)
        subprocess.run(
            [str(python), "-m", "pip", "install", "--quiet", AUTOGEN], check=True, timeout=_INSTALL_TIMEOUT_S
        )
    return str(python)

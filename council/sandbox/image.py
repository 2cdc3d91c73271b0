"""An image for containers made of the local interpreter: itself, its standard library, and the shared libraries of both.

Nothing is pulled, so it is made without a network. Needs `ldd`, which belongs to the C library.
"""

from __future__ import annotations

import io
import os
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
from collections.abc import Iterator
from pathlib import Path

from council.sandbox.containers import LOCAL_IMAGE, import_image
from council.sandbox.job import NoCage

_LEFT_OUT = {
    "site-packages", "dist-packages", "test", "tests", "idlelib", "tkinter", "turtledemo", "ensurepip", "lib2to3",
    "pydoc_data",
}  # fmt: skip
_LEFT_OUT_BEGINNINGS = ("config-", "_tkinter.")
_LDD_S = 60


def build_image() -> tuple[str, int]:
    """Makes LOCAL_IMAGE. Returns its name and its size in bytes. Raises NoCage."""
    with tempfile.NamedTemporaryFile(suffix=".tar") as file:
        with tarfile.open(fileobj=file, mode="w") as tar:
            for source, name in _files():
                entry = tar.gettarinfo(str(source), name)
                entry.uid = entry.gid = 0
                entry.uname = entry.gname = ""
                entry.mode = 0o755 if entry.mode & 0o100 else 0o644
                with source.open("rb") as content:
                    tar.addfile(entry, content)
            for name in ("tmp", "proc", "dev", "sys", "etc"):
                folder = tarfile.TarInfo(name)
                folder.type, folder.mode = tarfile.DIRTYPE, 0o1777 if name == "tmp" else 0o755
                tar.addfile(folder, io.BytesIO())
        file.flush()
        changes = ["ENV PATH=/usr/local/bin", "ENV LD_LIBRARY_PATH=/usr/local/lib"]
        return LOCAL_IMAGE, import_image(file.name, changes)


def _files() -> Iterator[tuple[Path, str]]:
    """Each file on this machine with its place in the image."""
    python = Path(os.path.realpath(sys.executable))
    library = Path(sysconfig.get_path("stdlib"))
    place = f"usr/local/lib/{library.name}"
    yield python, "usr/local/bin/python"
    objects = [python]
    for folder, folders, names in os.walk(library):
        folders[:] = sorted(name for name in folders if name not in _LEFT_OUT and not name.startswith("config-"))
        for name in sorted(names):
            path = Path(folder, name)
            if name.startswith(_LEFT_OUT_BEGINNINGS) or name.endswith((".a", ".opt-1.pyc", ".opt-2.pyc")):
                continue
            if ".so" in path.suffixes:
                objects.append(path)
            yield path.resolve(), f"{place}/{path.relative_to(library)}"
    for needed in sorted(_shared_libraries(objects)):
        # The loader stands where each program names it; everything else is found through LD_LIBRARY_PATH.
        loader = Path(needed).name.startswith("ld-")
        yield Path(needed).resolve(), needed.lstrip("/") if loader else f"usr/local/lib/{Path(needed).name}"


def _shared_libraries(objects: list[Path]) -> set[str]:
    try:
        done = subprocess.run(["ldd", *objects], capture_output=True, text=True, timeout=_LDD_S, check=False)
    except OSError as error:
        message = f"ldd cannot list the shared libraries: {error.strerror}."
        raise NoCage(message, fix="install the C library's tools") from None
    found = set()
    for line in done.stdout.splitlines():
        words = line.partition("=>")[2].split() or line.split()
        if words and words[0].startswith("/") and not words[0].endswith(":"):
            found.add(words[0])
    return found

"""The schemas of command files for editors; settings and tasks for `council init --vscode`, which replace no file."""

from __future__ import annotations

from pathlib import Path

from council.commands.schema import SCHEMA_FOLDER, schema_files
from council.commands.types import CommandTypes
from council.storage.files import as_storage_failed, write_atomic

_VSCODE = Path(__file__).parents[1] / "resources" / "vscode"  # its matcher reads what `council validate` prints


def write_vscode(home: Path) -> tuple[list[Path], dict[Path, str]]:
    """Writes the files that are not there yet.

    Returns the written ones. For files that are there and differ, it also returns what to add by hand.
    """
    written: list[Path] = []
    kept: dict[Path, str] = {}
    for source in sorted(_VSCODE.iterdir()):
        text, path = source.read_text(encoding="utf-8"), home / ".vscode" / source.name
        path.parent.mkdir(exist_ok=True)
        try:
            with path.open("x", encoding="utf-8") as stream:
                stream.write(text)
            written.append(path)
        except FileExistsError:
            if path.read_text(encoding="utf-8", errors="replace") != text:
                kept[path] = text
    return written, kept


def write_schemas(types: CommandTypes, home: Path) -> list[Path]:
    """Puts the schemas into `commands/.schema/`: generated files, replaced when they differ.

    Returns the written ones. Raises StorageFailed.
    """
    folder = home / "commands" / SCHEMA_FOLDER
    written = []
    with as_storage_failed(f"Cannot write into {folder}"):
        folder.mkdir(exist_ok=True)
        for name, data in schema_files(types).items():
            path = folder / name
            if not path.is_file() or path.read_bytes() != data:
                write_atomic(path, data, mode=0o644)
                written.append(path)
    return written

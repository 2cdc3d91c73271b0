"""Python code judged by its syntax tree: what it would do if it ran. The sandbox is the boundary, this is advice.

Names are followed through imports and plain assignments, so that `from os import system as s` is what it is; comments,
strings and names such as `retrieval_eval` are not. Reading files and variables is allowed.
"""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Iterator
from typing import Literal

import msgspec

Risk = Literal["low", "medium", "high"]
Kind = Literal["process", "evaluation", "network", "escape", "database", "filesystem", "environment", "unreadable"]

MAX_CODE_BYTES = 64 * 1024
MAX_FINDINGS = 20

_MODULES: dict[str, tuple[Kind, Risk]] = {
    **dict.fromkeys(("subprocess", "pty", "multiprocessing", "_posixsubprocess", "sh", "pexpect"), ("process", "high")),
    **dict.fromkeys(("ctypes", "cffi", "_ctypes", "mmap", "fcntl", "resource", "gc", "inspect"), ("escape", "high")),
    **dict.fromkeys(("pickle", "marshal", "dill", "cloudpickle", "shelve", "code", "codeop", "runpy"), ("evaluation", "high")),
    **dict.fromkeys(
        (
            "socket", "_socket", "ssl", "http", "urllib", "urllib3", "requests", "httpx", "httpx2", "aiohttp",
            "ftplib", "smtplib",
            "poplib", "imaplib", "telnetlib", "websocket", "websockets", "paramiko", "xmlrpc", "socketserver",
            "webbrowser", "asyncssh",
        ),
        ("network", "high"),
    ),
    **dict.fromkeys(("shutil", "tempfile"), ("filesystem", "medium")),
}  # fmt: skip
_HARMLESS = frozenset(
    {"urllib.parse", "http.HTTPStatus", "http.cookies", "inspect.cleandoc", "shutil.get_terminal_size"}
)
_CALLS: dict[str, tuple[Kind, Risk]] = {
    **dict.fromkeys(("eval", "exec", "compile", "__import__", "importlib.import_module", "builtins.eval", "builtins.exec",
                     "builtins.compile", "builtins.__import__", "breakpoint"), ("evaluation", "high")),
    **dict.fromkeys(("os.system", "os.popen", "os.fork", "os.forkpty", "os.kill", "os.killpg", "os.posix_spawn",
                     "os.posix_spawnp", "os.startfile", "signal.pthread_kill", "asyncio.create_subprocess_exec",
                     "asyncio.create_subprocess_shell"), ("process", "high")),
    **dict.fromkeys(("asyncio.open_connection", "asyncio.start_server"), ("network", "high")),
    **dict.fromkeys(("globals", "vars", "sys._getframe", "sys.settrace",
                     "os.setuid", "os.setgid", "os.chroot"), ("escape", "high")),
    **dict.fromkeys(("os.remove", "os.unlink", "os.rmdir", "os.removedirs", "os.rename", "os.renames", "os.replace",
                     "os.mkdir", "os.makedirs", "os.link", "os.symlink", "os.chmod", "os.chown", "os.truncate",
                     "os.mkfifo", "os.open", "os.write"), ("filesystem", "medium")),
    **dict.fromkeys(("os.putenv", "os.unsetenv", "os.environ.update", "os.environ.setdefault", "os.environ.pop",
                     "os.environ.clear"), ("environment", "medium")),
}  # fmt: skip
_SPAWNS = re.compile(r"os\.(?:exec|spawn)[lv]p?e?")
_WRITERS = frozenset({"write_text", "write_bytes", "unlink", "rmdir", "rmtree", "symlink_to", "hardlink_to", "touch"})
_INNER = frozenset(
    {"__subclasses__", "__globals__", "__builtins__", "__bases__", "__base__", "__mro__", "__code__", "__closure__",
     "__loader__", "__reduce__", "__reduce_ex__", "f_globals", "f_back", "gi_frame", "tb_frame", "cr_frame",
     "f_builtins"}
)  # fmt: skip
_DDL = re.compile(
    r"\s*(?:drop|alter|truncate|create|grant|revoke|attach)\s+(?:table|database|schema|index|user|role|view|\w)", re.I
)
_WRITES = re.compile(r"[wax+]")
_ROOTS = frozenset({"os", "sys", "builtins", "importlib", "asyncio", "signal"})


class CodeFinding(msgspec.Struct, frozen=True):
    """One thing that the code would do. `line` counts from 1, 0: of the whole."""

    kind: Kind
    risk: Risk
    line: int
    what: str

    def __str__(self) -> str:
        return f"line {self.line}: {self.what}" if self.line else self.what


def judge_python(code: str) -> list[CodeFinding]:
    """What is dangerous in `code`, in the order of its lines, at most MAX_FINDINGS; empty when nothing is. Code that is no
    Python, or too large, is a finding."""
    if len(code.encode("utf-8", "replace")) > MAX_CODE_BYTES:
        return [CodeFinding("unreadable", "medium", 0, f"the code is larger than {MAX_CODE_BYTES} bytes")]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(code)
    except SyntaxError as error:
        return [CodeFinding("unreadable", "medium", error.lineno or 0, "it is not Python")]
    except (ValueError, RecursionError, MemoryError):
        return [CodeFinding("unreadable", "medium", 0, "it is nested too deeply, or holds bytes that are no text")]
    reader = _Reader()
    found = sorted(reader.findings(tree), key=lambda finding: finding.line)
    return list(dict.fromkeys(found))[:MAX_FINDINGS]


class _Reader:
    """Walks a tree (iteratively, whatever its depth) and knows what each local name stands for."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}  # local name -> dotted name

    def findings(self, tree: ast.Module) -> Iterator[CodeFinding]:
        nodes = list(ast.walk(tree))
        for node in nodes:
            self._learn(node)
        for node in nodes:
            yield from self._of(node)

    def _learn(self, node: ast.AST) -> None:
        if isinstance(node, ast.Import):
            for alias in node.names:
                self._names[alias.asname or alias.name.split(".")[0]] = (
                    alias.name if alias.asname else alias.name.split(".")[0]
                )
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            for alias in node.names:
                self._names[alias.asname or alias.name] = f"{node.module}.{alias.name}"
        elif isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            dotted = self._dotted(node.value)
            if dotted and (dotted in _CALLS or dotted.split(".")[0] in _ROOTS | _MODULES.keys()):
                self._names.setdefault(node.targets[0].id, dotted)

    def _of(self, node: ast.AST) -> Iterator[CodeFinding]:
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield from self._import(alias.name, node.lineno)
        elif isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                name = f"{node.module}.{alias.name}"
                yield from self._import(name, node.lineno)
                if name in _CALLS or _SPAWNS.fullmatch(name):
                    yield self._call_finding(name, node.lineno)
        elif isinstance(node, ast.Call):
            yield from self._call(node)
        elif isinstance(node, ast.Attribute) and node.attr in _INNER:
            yield CodeFinding("escape", "high", node.lineno, f"it reaches for `{node.attr}`")
        elif isinstance(node, (ast.Assign, ast.AugAssign, ast.Delete)):
            targets = [node.target] if isinstance(node, ast.AugAssign) else node.targets
            if any(
                isinstance(target, ast.Subscript) and self._dotted(target.value) == "os.environ" for target in targets
            ):
                yield CodeFinding("environment", "medium", node.lineno, "it changes the environment")

    def _import(self, name: str, line: int) -> Iterator[CodeFinding]:
        if name in _HARMLESS or any(name.startswith(f"{known}.") for known in _HARMLESS):
            return
        known = _MODULES.get(name.split(".")[0])
        if known is not None:
            yield CodeFinding(*known, line, f"it imports `{name}`")

    def _call(self, node: ast.Call) -> Iterator[CodeFinding]:
        name = self._dotted(node.func)
        if name in _CALLS or _SPAWNS.fullmatch(name):
            yield self._call_finding(name, node.lineno)
        elif name in ("open", "io.open", "builtins.open", "codecs.open") and self._opens_to_write(node, 1):
            yield CodeFinding("filesystem", "medium", node.lineno, "it opens a file to write")
        elif name == "getattr" and len(node.args) > 1:
            yield from self._getattr(node)
        if isinstance(node.func, ast.Attribute):
            attribute = node.func.attr
            if attribute in _WRITERS:
                yield CodeFinding("filesystem", "medium", node.lineno, f"it calls `.{attribute}()`")
            elif (
                attribute == "open"
                and name not in ("io.open", "codecs.open", "os.open")
                and self._opens_to_write(node, 0)
            ):
                yield CodeFinding("filesystem", "medium", node.lineno, "it opens a file to write")
            elif attribute in ("execute", "executemany", "executescript") and _is_ddl(node):
                yield CodeFinding("database", "high", node.lineno, "it changes the structure of a database")

    def _getattr(self, node: ast.Call) -> Iterator[CodeFinding]:
        """A name that is put together at run time hides what is called."""
        wanted = _constant(node.args[1])
        owner = self._dotted(node.args[0])
        if wanted is None and owner.split(".")[0] in _ROOTS | _MODULES.keys() | {"__builtins__"}:
            yield CodeFinding(
                "escape", "high", node.lineno, f"it looks up a name in `{owner}` that only shows when it runs"
            )
        elif wanted is not None and wanted in _INNER:
            yield CodeFinding("escape", "high", node.lineno, f"it reaches for `{wanted}`")
        elif wanted is not None and f"{owner}.{wanted}" in _CALLS:
            yield self._call_finding(f"{owner}.{wanted}", node.lineno)

    @staticmethod
    def _call_finding(name: str, line: int) -> CodeFinding:
        kind, risk = _CALLS.get(name, ("process", "high"))
        return CodeFinding(kind, risk, line, f"it calls `{name}`")

    @staticmethod
    def _opens_to_write(node: ast.Call, at: int) -> bool:
        mode = next((keyword.value for keyword in node.keywords if keyword.arg == "mode"), None)
        if mode is None and len(node.args) > at:
            mode = node.args[at]
        if mode is None:
            return False
        text = _constant(mode)
        return text is None or bool(_WRITES.search(text) and len(text) <= 4)

    def _dotted(self, node: ast.AST) -> str:
        """`os.path.join` of the expression that names it, aliases resolved; empty for any other expression."""
        parts: list[str] = []
        while isinstance(node, ast.Attribute):
            parts.append(node.attr)
            node = node.value
        if (
            isinstance(node, ast.Call)
            and self._dotted(node.func) in ("__import__", "importlib.import_module")
            and node.args
        ):
            module = _constant(node.args[0])
            return ".".join([module, *reversed(parts)]) if module else ""
        if not isinstance(node, ast.Name):
            return ""
        return ".".join([self._names.get(node.id, node.id), *reversed(parts)])


def _constant(node: ast.AST) -> str | None:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else None


def _is_ddl(node: ast.Call) -> bool:
    first = node.args[0] if node.args else None
    if isinstance(first, ast.JoinedStr) and first.values:
        first = first.values[0]
    text = _constant(first) if first is not None else None
    return text is not None and bool(_DDL.match(text))

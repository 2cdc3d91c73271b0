"""Python code judged by its syntax tree: what it would do if it ran. The sandbox is the boundary, this is advice.

What counts is that a dangerous thing is named, not that it is called: `map(os.system, …)`, a default argument and a list
that holds `eval` are what they are. A guarded name as a value (`o = open`, `for m in (os,)`) is a finding by itself.
Names are followed through imports, plain assignments and other modules' attributes (`path.os.system`), strings through
`+`. Comments, other strings and names such as `retrieval_eval` are nothing; reading files inside the home and variables
is allowed. What only shows when the code runs is not found.
"""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Iterator, Sequence
from typing import Literal

import msgspec

from council.safety.reach import Risk, judge_host, judge_path

Kind = Literal["process", "evaluation", "network", "escape", "database", "filesystem", "environment", "unreadable"]

MAX_CODE_BYTES = 64 * 1024
MAX_FINDINGS = 20
_MAX_PARTS = 200  # of an expression that is followed: attributes of attributes, sums of strings

_MAX_CALLS = 3  # of a call's result that is called

_MODULES: dict[str, tuple[Kind, Risk]] = {
    **dict.fromkeys(("subprocess", "pty", "multiprocessing", "_posixsubprocess", "sh", "pexpect", "posix", "nt", "_winapi"),
                    ("process", "high")),
    **dict.fromkeys(("ctypes", "cffi", "_ctypes", "mmap", "fcntl", "resource"), ("escape", "high")),
    **dict.fromkeys(("pickle", "marshal", "dill", "cloudpickle", "shelve", "code", "codeop", "runpy", "pip", "ensurepip",
                     "zipimport", "pdb", "bdb", "trace", "venv", "imp", "compileall", "py_compile"), ("evaluation", "high")),
    **dict.fromkeys(
        (
            "socket", "_socket", "ssl", "http", "urllib", "urllib3", "requests", "httpx", "httpx2", "aiohttp",
            "ftplib", "smtplib",
            "poplib", "imaplib", "nntplib", "telnetlib", "websocket", "websockets", "paramiko", "xmlrpc", "socketserver",
            "webbrowser", "wsgiref", "antigravity",  "asyncssh", "grpc", "boto3", "botocore", "psycopg", "psycopg2", "asyncpg",
            "pymysql",
            "pymongo", "redis",
        ),
        ("network", "high"),
    ),
    **dict.fromkeys(("shutil", "tempfile", "fileinput"), ("filesystem", "medium")),
}  # fmt: skip
_HARMLESS = frozenset({"urllib.parse", "http.HTTPStatus", "http.cookies", "shutil.get_terminal_size"})
_NAMES: dict[str, tuple[Kind, Risk]] = {
    **dict.fromkeys(("eval", "exec", "compile", "__import__", "importlib.import_module", "importlib.reload",
                     "importlib.util.spec_from_file_location", "importlib.machinery", "breakpoint", "timeit.timeit",
                     "timeit.repeat", "cProfile.run", "profile.run", "logging.config", "pkgutil.resolve_name", "joblib.load",
                     "torch.load", "pandas.read_pickle",
                     "yaml.load", "yaml.unsafe_load", "yaml.full_load", "sys.meta_path", "sys.path_hooks"),
                    ("evaluation", "high")),
    **dict.fromkeys(("sys.path.insert", "sys.path.append", "sys.path.extend"), ("evaluation", "medium")),
    **dict.fromkeys(("os.system", "os.popen", "os.fork", "os.forkpty", "os.kill", "os.killpg", "os.posix_spawn",
                     "os.posix_spawnp", "os.startfile", "signal.pthread_kill", "asyncio.create_subprocess_exec",
                     "asyncio.create_subprocess_shell", "asyncio.subprocess", "concurrent.futures.ProcessPoolExecutor"),
                     ("process", "high")),
    **dict.fromkeys(("asyncio.open_connection", "asyncio.start_server"), ("network", "high")),
    **dict.fromkeys(("__builtins__", "globals", "vars", "sys.modules", "sys._getframe", "sys._current_frames", "sys.settrace",
                     "sys.setprofile", "sys.addaudithook", "os.setuid", "os.setgid", "os.chroot", "types.FunctionType",
                     "types.CodeType", "inspect.currentframe", "inspect.stack", "inspect.trace", "gc.get_objects",
                     "gc.get_referrers", "gc.get_referents"), ("escape", "high")),
    **dict.fromkeys(("os.remove", "os.unlink", "os.rmdir", "os.removedirs", "os.rename", "os.renames", "os.replace",
                     "os.mkdir", "os.makedirs", "os.link", "os.symlink", "os.chmod", "os.chown", "os.truncate",
                     "os.mkfifo", "os.open", "os.write", "os.fdopen", "logging.FileHandler", "pathlib.Path.rename",
                     "pathlib.Path.replace", "pathlib.Path.touch", "pathlib.Path.chmod", "pathlib.Path.mkdir"),
                    ("filesystem", "medium")),
    **dict.fromkeys(("os.putenv", "os.unsetenv", "os.environ.update", "os.environ.setdefault", "os.environ.pop",
                     "os.environ.clear"), ("environment", "medium")),
}  # fmt: skip
_SPAWNS = re.compile(r"os\.(?:exec|spawn)[lv]p?e?")
_OPENERS = frozenset({"open", "io.open", "codecs.open", "io.FileIO", "_io.open", "_io.FileIO", "_pyio.open"})
_PATHS = frozenset({"pathlib.Path", "pathlib.PosixPath", "pathlib.PurePath"})
_BUILTINS = frozenset({"open", "getattr", "setattr", "delattr"})
_IMPORTERS = ("__import__", "importlib.import_module")
# Methods whose name is enough, whatever they belong to.
_METHODS: dict[str, tuple[Kind, Risk]] = {
    **dict.fromkeys(("write_text", "write_bytes", "unlink", "rmdir", "rmtree", "symlink_to", "hardlink_to", "extractall"),
                    ("filesystem", "medium")),
    **dict.fromkeys(("subprocess_shell", "subprocess_exec"), ("process", "high")),
    **dict.fromkeys(("create_connection", "create_server", "enable_load_extension"), ("network", "high")),
}  # fmt: skip
_INNER = frozenset(
    {"__subclasses__", "__globals__", "__builtins__", "__bases__", "__base__", "__mro__", "__code__", "__closure__",
     "__loader__", "__reduce__", "__reduce_ex__", "f_globals", "f_back", "gi_frame", "tb_frame", "cr_frame",
     "f_builtins"}
)  # fmt: skip
_LOOKUPS = frozenset({"__dict__", "__getattribute__", "__self__"})  # of a module or a builtin
_DDL = re.compile(
    r"(?:\s|--[^\n]*\n|/\*.*?\*/)*(?:drop|alter|truncate|create|grant|revoke|attach)"
    r"\s+(?:table|database|schema|index|user|role|view|\w)",
    re.I | re.S,
)
_MODE = re.compile(r"(?=.*[wax+])[rwxabt+]{1,4}")
_INNER_FIELD = re.compile(r"\{[^{}]*__(?:globals|builtins|subclasses|code|mro|base)__")  # `"{0.__globals__}".format(f)`
_URL = re.compile(r"(?:https?|wss?|ftp)://([^/?#\s]+)", re.I)
# Binding these to another name hides what is used: the modules, where they are imported, and what opens or looks up.
_GUARDED: dict[str, tuple[Kind, Risk]] = {
    **dict.fromkeys(("os", "sys", "builtins", "importlib", "asyncio", "signal", "io", "codecs", "_io"), ("escape", "high")),
    **dict.fromkeys(("getattr", "setattr", "delattr", "operator.attrgetter", "operator.methodcaller"), ("escape", "high")),
    **dict.fromkeys(("open", "io.open", "codecs.open", "io.FileIO", "_io.open", "_io.FileIO", "_pyio.open"),
                    ("filesystem", "medium")),
}  # fmt: skip
_SCOPES = (
    ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp,
    ast.ClassDef, ast.Module,
)  # fmt: skip
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
    """Finds what is dangerous in `code`, in the order of its lines, at most MAX_FINDINGS. Code that is no Python, or
    too large, is a finding."""
    if len(code.encode("utf-8", "replace")) > MAX_CODE_BYTES:
        return [CodeFinding("unreadable", "medium", 0, f"the code is larger than {MAX_CODE_BYTES} bytes")]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(code)
    except SyntaxError as error:
        return [CodeFinding("unreadable", "medium", error.lineno or 0, "it is not Python")]
    except (ValueError, RecursionError, MemoryError):
        return [CodeFinding("unreadable", "medium", 0, "it is nested too deeply, or contains bytes that are not text")]
    found = sorted(_Reader().findings(tree), key=lambda finding: finding.line)
    return list(dict.fromkeys(found))[:MAX_FINDINGS]


class _Reader:
    """Walks a tree (iteratively, whatever its depth) and knows what each local name stands for."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}  # local name -> dotted name
        self._texts: dict[str, str] = {}  # local name -> the string it was given
        self._own: dict[str, int] = {}  # what the module itself calls by a name of ours -> from which line on

    def findings(self, tree: ast.Module) -> Iterator[CodeFinding]:
        nodes = list(ast.walk(tree))
        for statement in tree.body:
            if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                self._own.setdefault(statement.name, statement.lineno)
            elif isinstance(statement, ast.Assign) and not self._dotted(statement.value):
                names = [target.id for target in statement.targets if isinstance(target, ast.Name)]
                self._own.update((name, statement.lineno) for name in names if name in _NAMES)
        for node in nodes:
            if isinstance(node, ast.Import):
                for alias in node.names:
                    top = alias.name.split(".")[0]
                    self._names[alias.asname or top] = alias.name if alias.asname else top
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                for alias in node.names:
                    self._names[alias.asname or alias.name] = f"{node.module}.{alias.name}"
            elif isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
                own = node.targets[0].id
                dotted, text = self._dotted(node.value), self._text(node.value)
                if dotted and (
                    dotted in _NAMES or dotted in _PATHS or dotted.split(".")[0] in _ROOTS | _MODULES.keys()
                ):
                    self._names.setdefault(own, dotted)
                elif text is not None:
                    self._texts.setdefault(own, text)
        inner = {id(node.value) for node in nodes if isinstance(node, ast.Attribute)}
        called = {id(node.func) for node in nodes if isinstance(node, ast.Call)}
        # `getattr(os, "name")` is judged by the name.
        called |= {id(node.args[0]) for node in nodes if isinstance(node, ast.Call) and len(node.args) > 1
                   and isinstance(node.func, ast.Name) and node.func.id in ("getattr", "hasattr")}  # fmt: skip
        bindings = _Bindings(tree)
        prose = {
            id(node.value) for node in nodes if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        }
        for node in nodes:
            if id(node) not in prose:
                yield from self._of(node, is_whole=id(node) not in inner)
            if isinstance(node, (ast.Name, ast.Attribute)) and id(node) not in inner | called:
                yield from self._value(node, bindings)

    def _of(self, node: ast.AST, *, is_whole: bool) -> Iterator[CodeFinding]:
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield from self._import(alias.name, node.lineno)
        elif isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                if alias.name == "*" and node.module.split(".")[0] in _ROOTS:
                    words = f"it imports everything from `{node.module}`, which hides what it uses"
                    yield CodeFinding("escape", "high", node.lineno, words)
                dotted = f"{node.module}.{alias.name}"
                yield from self._import(dotted, node.lineno)
                if (found := _dangerous(dotted)) is not None:
                    yield CodeFinding(*found, node.lineno, f"it uses `{dotted}`")
        elif isinstance(node, (ast.Name, ast.Attribute)) and isinstance(node.ctx, ast.Load) and is_whole:
            name = self._dotted(node)
            found = _dangerous(name)
            if found is not None:
                yield CodeFinding(*found, node.lineno, f"it uses `{_short(name)}`")
        elif isinstance(node, ast.Call):
            yield from self._call(node)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            for match in _URL.finditer(node.value):
                risk, reason = judge_host(match[1])
                if risk == "high":
                    yield CodeFinding("network", risk, node.lineno, f"it names a URL: {reason}")
            if _INNER_FIELD.search(node.value):
                yield CodeFinding("escape", "high", node.lineno, "a format string reaches inside an object")
        elif isinstance(node, (ast.Assign, ast.AugAssign, ast.Delete)):
            targets = [node.target] if isinstance(node, ast.AugAssign) else node.targets
            if any(
                isinstance(target, ast.Subscript) and self._dotted(target.value) == "os.environ" for target in targets
            ):
                yield CodeFinding("environment", "medium", node.lineno, "it changes the environment")
        if isinstance(node, ast.Attribute):
            owner = _short(self._dotted(node.value))
            if node.attr in _INNER:
                yield CodeFinding("escape", "high", node.lineno, f"it reaches for `{node.attr}`")
            elif node.attr in _LOOKUPS and (owner.split(".")[0] in _ROOTS or owner in _NAMES or owner == "print"):
                yield CodeFinding("escape", "high", node.lineno, f"it looks things up in `{owner}` by `{node.attr}`")

    def _value(self, node: ast.Name | ast.Attribute, bindings: _Bindings) -> Iterator[CodeFinding]:
        """A guarded name that is not called but kept, passed or returned: whatever takes it can be called by any name."""
        name = _short(self._dotted(node)) if isinstance(node.ctx, ast.Load) else ""
        if name not in _GUARDED or (isinstance(node, ast.Name) and bindings.is_own(node)):
            return
        if isinstance(node, ast.Attribute) or node.id in self._names or name in _BUILTINS:
            yield CodeFinding(
                *_GUARDED[name], node.lineno, f"it uses `{name}` as a value, which hides what is done with it"
            )

    def _import(self, name: str, line: int) -> Iterator[CodeFinding]:
        if name in _HARMLESS or any(name.startswith(f"{known}.") for known in _HARMLESS):
            return
        known = _MODULES.get(name.split(".")[0])
        if known is not None:
            yield CodeFinding(*known, line, f"it imports `{name}`")

    def _call(self, node: ast.Call) -> Iterator[CodeFinding]:
        name = _short(self._dotted(node.func))
        if name in _OPENERS and self._opens_to_write(node, 1):
            yield CodeFinding("filesystem", "medium", node.lineno, "it opens a file to write")
        elif name == "getattr" and len(node.args) > 1:
            yield from self._getattr(node, self._dotted(node.args[0]), node.args[1])
        elif name in ("operator.attrgetter", "operator.methodcaller") and node.args:
            yield from self._getattr(node, "os", node.args[0])
        elif name == "numpy.load" and any(keyword.arg == "allow_pickle" for keyword in node.keywords):
            yield CodeFinding("evaluation", "high", node.lineno, "it loads pickled objects")
        if name in _OPENERS | _PATHS and node.args:
            path = self._text(node.args[0])
            judged = judge_path(path) if path else None
            if judged is not None and judged[0] == "high":
                yield CodeFinding("filesystem", "high", node.lineno, f"it opens a file: {judged[1]}")
        if isinstance(node.func, ast.Attribute):
            method = node.func.attr
            if method in _METHODS:
                yield CodeFinding(*_METHODS[method], node.lineno, f"it calls `.{method}()`")
            elif method == "open" and name not in _OPENERS and name not in _NAMES and self._opens_to_write(node, 0):
                yield CodeFinding("filesystem", "medium", node.lineno, "it opens a file to write")
            elif method in ("execute", "executemany", "executescript") and node.args:
                text = self._text(node.args[0])
                if text is not None and _DDL.match(text):
                    yield CodeFinding("database", "high", node.lineno, "it changes the structure of a database")

    def _getattr(self, node: ast.Call, owner: str, wanted: ast.AST) -> Iterator[CodeFinding]:
        """A name that is put together at run time hides what is used."""
        text = self._text(wanted)
        if text is None and owner.split(".")[0] in _ROOTS | _MODULES.keys():
            yield CodeFinding(
                "escape", "high", node.lineno, f"it looks up a name in `{owner}` that only shows when it runs"
            )
        elif text is not None and text in _INNER:
            yield CodeFinding("escape", "high", node.lineno, f"it reaches for `{text}`")
        elif text is not None and (found := _dangerous(f"{owner}.{text}")) is not None:
            yield CodeFinding(*found, node.lineno, f"it uses `{_short(f'{owner}.{text}')}`")

    def _opens_to_write(self, node: ast.Call, at: int) -> bool:
        if any(isinstance(argument, ast.Starred) for argument in node.args) or any(
            k.arg is None for k in node.keywords
        ):
            return True
        mode = next((keyword.value for keyword in node.keywords if keyword.arg == "mode"), None)
        if mode is None and len(node.args) > at:
            mode = node.args[at]
        if mode is None:
            return False
        text = self._text(mode)
        return text is None or _MODE.fullmatch(text) is not None

    def _dotted(self, node: ast.AST, calls: int = 0) -> str:
        """`os.path.join` of the expression that names it, aliases resolved; empty for any other expression."""
        parts: list[str] = []
        for _ in range(_MAX_PARTS):
            if isinstance(node, ast.Attribute):
                parts.append(node.attr)
                node = node.value
            elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):  # a path and a name
                node = node.left
            elif isinstance(node, ast.Call) and calls < _MAX_CALLS:
                called = self._dotted(node.func, calls + 1)
                if called in _PATHS:
                    return ".".join(["pathlib.Path", *reversed(parts)])
                module = self._text(node.args[0]) if called in _IMPORTERS and node.args else None
                return ".".join([module, *reversed(parts)]) if module else ""
            else:
                break
        if not isinstance(node, ast.Name) or node.lineno > self._own.get(node.id, node.lineno):
            return ""
        return ".".join([self._names.get(node.id, node.id), *reversed(parts)])

    def _text(self, node: ast.AST) -> str | None:
        """The string that an expression is, as far as it shows: constants, their sums, names that were given one; of an
        f-string its beginning."""
        pieces: list[str] = []
        waiting: list[ast.AST] = [node]
        for _ in range(_MAX_PARTS):
            if not waiting:
                return "".join(pieces)
            part = waiting.pop()
            if isinstance(part, ast.Constant) and isinstance(part.value, str):
                pieces.append(part.value)
            elif isinstance(part, ast.BinOp) and isinstance(part.op, ast.Add):
                waiting += [part.right, part.left]
            elif isinstance(part, ast.JoinedStr) and part.values:
                waiting.append(part.values[0])
            elif isinstance(part, ast.Name) and part.id in self._texts:
                pieces.append(self._texts[part.id])
            else:
                return None
        return None


class _Bindings:
    """The names that the code binds itself, by their places: a parameter `open` is no builtin."""

    def __init__(self, tree: ast.Module) -> None:
        self._above = {id(child): node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}
        self._bound: dict[int, dict[str, int]] = {}  # by scope: name -> the first line that binds it
        for node in ast.walk(tree):
            if isinstance(node, ast.arg) or (isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)):
                name = node.arg if isinstance(node, ast.arg) else node.id
                scope = self._scope_of(node)
                if isinstance(node, ast.Name) and isinstance(self._above[id(node)], ast.NamedExpr):
                    while isinstance(scope, (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)):
                        scope = self._scope_of(scope)
                lines = self._bound.setdefault(id(scope), {})
                lines[name] = min(node.lineno, lines.get(name, node.lineno))
            elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                lines = self._bound.setdefault(id(self._scope_of(node)), {})
                lines[node.name] = min(node.lineno, lines.get(node.name, node.lineno))

    def is_own(self, name: ast.Name) -> bool:
        """Tells whether the name is one that the code bound before: as a local of a function, or on a line above."""
        scope: ast.AST | None = self._scope_of(name)
        direct = True
        while scope is not None:
            line = self._bound.get(id(scope), {}).get(name.id)
            by_line = isinstance(scope, (ast.Module, ast.ClassDef))
            if (
                line is not None
                and (line < name.lineno if by_line else True)
                and (direct or not isinstance(scope, ast.ClassDef))
            ):
                return True
            direct = False
            scope = self._scope_of(scope) if not isinstance(scope, ast.Module) else None
        return False

    def _scope_of(self, node: ast.AST) -> ast.AST:
        """The scope in which a node is evaluated: defaults, decorators and the first iterable of a comprehension are so
        outside of what they belong to."""
        child = node
        above = self._above.get(id(child))
        while above is not None:
            if isinstance(above, ast.arguments) and not isinstance(child, ast.arg):
                child = self._above[id(above)]
            elif isinstance(above, ast.comprehension) and child is above.iter:
                owner = self._above[id(above)]
                child = owner if above is owner.generators[0] else above  # type: ignore[attr-defined]
            elif isinstance(above, ast.arg):
                child = self._above[id(self._above[id(above)])]
            elif isinstance(above, _SCOPES) and not (
                isinstance(above, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef))
                and (
                    child in above.decorator_list
                    or child is getattr(above, "returns", None)
                    or child in getattr(above, "bases", ())
                )
            ):
                return above
            else:
                child = above
            above = self._above.get(id(child))
        return child


def _short(name: str) -> str:
    """A dotted name from the last module in it that matters: `random._os.system` is `os.system`, `builtins.eval` `eval`."""
    parts: Sequence[str] = name.split(".")
    for at in range(len(parts) - 1, 0, -1):
        if parts[at].lstrip("_") in _ROOTS:
            parts = [parts[at].lstrip("_"), *parts[at + 1 :]]
            break
    return ".".join(parts[1:] if parts[0] in ("builtins", "__builtins__") and len(parts) > 1 else parts)


def _dangerous(name: str) -> tuple[Kind, Risk] | None:
    """The kind of danger of a dotted name, or of what it belongs to."""
    short = _short(name)
    if _SPAWNS.fullmatch(short):
        return "process", "high"
    parts = short.split(".")
    return next((_NAMES[part] for at in range(len(parts), 0, -1) if (part := ".".join(parts[:at])) in _NAMES), None)

"""Python code judged by its syntax tree: what it would do if it ran. The sandbox is the boundary, this is advice.

What counts is that a dangerous thing is named, not that it is called. So `map(os.system, …)`, a default argument and a list
that holds `eval` are what they are. Of the standard library, and of `os` and `sys`, only what is listed here as harmless
passes. A module or a guarded builtin as a value (`o = open`, `for m in (os,)`) is a finding by itself. Names are followed
through imports and other modules' attributes (`path.os.system`), strings through `+`. Comments, other strings and names such
as `retrieval_eval` are nothing, unless they turn the reading of what stands after them. Reading files inside the home and
variables is allowed. What only shows when the code runs is not found.
"""

from __future__ import annotations

import ast
import builtins
import re
import sys
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Literal

import msgspec

from council.safety.host_and_path_risk import Risk, judge_host, judge_path
from council.safety.python_names import OwnNames

Kind = Literal["process", "evaluation", "network", "escape", "database", "filesystem", "environment", "unreadable"]

MAX_CODE_BYTES = 64 * 1024
MAX_FINDINGS = 20
_MAX_PARTS = 200  # of an expression that is followed: attributes of attributes, sums of strings
_MAX_CALLS = 3  # of a call's result that is called

# The modules of the standard library that only compute, or whose doors are listed below; every other one is a finding.
HARMLESS_MODULES = frozenset(
    """
    __future__ abc argparse array ast asyncio base64 binascii bisect builtins bz2 calendar cmath codecs collections colorsys
    concurrent configparser contextlib contextvars copy csv dataclasses datetime decimal difflib email encodings enum errno
    fnmatch fractions functools gc genericpath getopt gettext glob graphlib gzip hashlib heapq hmac html importlib inspect io
    ipaddress itertools json keyword locale logging lzma math mimetypes ntpath numbers operator os pathlib platform posixpath
    pprint queue quopri random re reprlib sched secrets signal sqlite3 stat statistics string stringprep struct sys tarfile
    textwrap this threading time timeit token tomllib traceback types typing unicodedata unittest uuid warnings weakref xml
    zipfile zlib zoneinfo _hashlib _signal
    """.split()  # noqa: SIM905  words read better than quotation marks
)
_MODULES: dict[str, tuple[Kind, Risk]] = {
    **dict.fromkeys((*(sys.stdlib_module_names - HARMLESS_MODULES), "cffi", "imp"), ("escape", "high")),
    **dict.fromkeys(("subprocess", "pty", "multiprocessing", "_posixsubprocess", "sh", "pexpect", "posix", "nt", "_winapi"),
                    ("process", "high")),
    **dict.fromkeys(("pickle", "marshal", "dill", "cloudpickle", "jsonpickle", "shelve", "code", "codeop", "runpy", "pip"),
                    ("evaluation", "high")),
    **dict.fromkeys(
        (
            "socket", "ssl", "http", "urllib", "urllib3", "requests", "httpx", "httpx2", "aiohttp", "ftplib", "smtplib",
            "poplib", "imaplib", "nntplib", "telnetlib", "websocket", "websockets", "paramiko", "xmlrpc", "socketserver",
            "webbrowser", "wsgiref", "asyncssh", "grpc", "boto3", "botocore", "psycopg", "psycopg2", "asyncpg", "pymysql",
            "pymongo", "redis",
        ),
        ("network", "high"),
    ),
    **dict.fromkeys(("shutil", "tempfile", "fileinput"), ("filesystem", "medium")),
}  # fmt: skip
_HARMLESS = frozenset({"urllib.parse", "http.HTTPStatus", "http.cookies", "shutil.get_terminal_size"})
_HARMLESS_TOPS = frozenset(name.split(".")[0] for name in _HARMLESS)
# What passes of these modules; all else of them acts on the machine or reaches into the interpreter.
_ALLOWED: dict[str, frozenset[str]] = {
    "os": frozenset(
        """
        DirEntry F_OK PathLike R_OK SEEK_CUR SEEK_END SEEK_SET W_OK X_OK access altsep cpu_count curdir devnull environ error
        extsep fsdecode fsencode fspath fstat get_terminal_size getcwd getenv getlogin getpid getppid isatty linesep listdir
        lstat name pardir path pathsep readlink scandir sep stat stat_result strerror times uname urandom walk
        """.split()  # noqa: SIM905
    ),
    "sys": frozenset(
        """
        api_version argv builtin_module_names byteorder copyright exc_info executable exit flags float_info
        getdefaultencoding getfilesystemencoding getrecursionlimit getsizeof hash_info hexversion implementation int_info
        intern maxsize maxunicode orig_argv path platform prefix setrecursionlimit stderr stdin stdlib_module_names stdout
        version version_info warnoptions
        """.split()  # noqa: SIM905
    ),
    "importlib": frozenset({"metadata", "resources"}),
}
_PROCESS = re.compile(r"os\.(?:exec|spawn|posix_spawn|fork|kill|popen|system|startfile|abort|_exit)\w*")
_NAMES: dict[str, tuple[Kind, Risk]] = {
    **dict.fromkeys(("eval", "exec", "compile", "__import__", "importlib.import_module", "breakpoint", "timeit.timeit",
                     "timeit.repeat", "timeit.Timer", "timeit.main", "logging.config", "unittest.mock", "joblib.load",
                     "torch.load", "pandas.read_pickle", "pandas.eval", "typing.get_type_hints", "typing.ForwardRef",
                     "importlib.metadata.entry_points", "importlib.metadata.EntryPoint",
                     "yaml.load", "yaml.load_all", "yaml.unsafe_load", "yaml.unsafe_load_all", "yaml.full_load",
                     "yaml.full_load_all"), ("evaluation", "high")),
    **dict.fromkeys(("sys.path.insert", "sys.path.append", "sys.path.extend"), ("evaluation", "medium")),
    **dict.fromkeys(("signal.pthread_kill", "signal.raise_signal", "asyncio.create_subprocess_exec",
                     "asyncio.create_subprocess_shell", "asyncio.subprocess", "concurrent.futures.ProcessPoolExecutor",
                     "concurrent.futures.process"), ("process", "high")),
    **dict.fromkeys(("asyncio.open_connection", "asyncio.start_server", "asyncio.open_unix_connection",
                     "asyncio.start_unix_server", "logging.handlers"), ("network", "high")),
    **dict.fromkeys(("__builtins__", "__loader__", "__spec__", "globals", "locals", "vars", "types.FunctionType",
                     "types.CodeType", "inspect.currentframe", "inspect.stack", "inspect.trace", "inspect.getattr_static",
                     "gc.get_objects", "gc.get_referrers", "gc.get_referents", "threading.settrace",
                     "threading.setprofile"), ("escape", "high")),
    **dict.fromkeys(("logging.FileHandler", "pathlib.Path.rename", "pathlib.Path.replace", "pathlib.Path.touch",
                     "pathlib.Path.chmod", "pathlib.Path.mkdir", "pathlib.Path.home", "os.path.expanduser",
                     "contextlib.chdir"),
                    ("filesystem", "medium")),
    **dict.fromkeys(("os.putenv", "os.unsetenv", "os.environ.update", "os.environ.setdefault", "os.environ.pop",
                     "os.environ.clear"), ("environment", "medium")),
}  # fmt: skip
_OPENERS = frozenset(
    {"open", "io.open", "codecs.open", "io.FileIO", "_io.open", "_io.FileIO", "gzip.open", "gzip.GzipFile", "bz2.open",
     "bz2.BZ2File", "lzma.open", "lzma.LZMAFile", "tarfile.open", "tarfile.TarFile", "zipfile.ZipFile"}
)  # fmt: skip
_PATHS = frozenset({"pathlib.Path", "pathlib.PosixPath", "pathlib.PurePath"})
_BUILTINS = frozenset(dir(builtins))
_IMPORTERS = ("__import__", "importlib.import_module")
# Attributes whose name is enough, whatever they belong to.
_ATTRIBUTES: dict[str, tuple[Kind, Risk]] = {
    **dict.fromkeys(("write_text", "write_bytes", "unlink", "rmdir", "rmtree", "symlink_to", "hardlink_to", "extractall",
                     "expanduser"), ("filesystem", "medium")),
    **dict.fromkeys(("subprocess_shell", "subprocess_exec"), ("process", "high")),
    **dict.fromkeys(("create_connection", "create_server"), ("network", "high")),
    **dict.fromkeys(("load_module", "exec_module", "enable_load_extension", "load_extension"), ("evaluation", "high")),
    **dict.fromkeys(
        ("__subclasses__", "__globals__", "__builtins__", "__bases__", "__base__", "__mro__", "__code__", "__closure__",
         "__loader__", "__spec__", "__self__", "__getattribute__", "__reduce__", "__reduce_ex__", "f_globals", "f_back",
         "f_builtins", "f_code", "gi_frame", "gi_code", "tb_frame", "cr_frame", "cr_code", "ag_frame", "ag_code"),
        ("escape", "high"),
    ),
}  # fmt: skip
_DDL = re.compile(
    r"(?:\s|--[^\n]*\n|/\*.*?\*/)*(?:drop|alter|truncate|create|grant|revoke|attach)"
    r"\s+(?:table|database|schema|index|user|role|view|\w)",
    re.I | re.S,
)
_MODE = re.compile(r"(?=.*[wax+])[rwxabt+]{1,4}")
_INNER_TEXT = re.compile(r"__(?:globals|builtins|subclasses|code|mro|bases?)__")  # `"{0.__globals__}".format(f)`
_URL = re.compile(r"(?:https?|wss?|ftp)://([^/?#\s]+)", re.I)
# Builtins that hide what is used when another name is bound to them.
_GUARDED: dict[str, tuple[Kind, Risk]] = {
    **dict.fromkeys(
        ("getattr", "setattr", "delattr", "operator.attrgetter", "operator.methodcaller"), ("escape", "high")
    ),
    **dict.fromkeys(_OPENERS, ("filesystem", "medium")),
}
_LITERALS = re.compile(  # and comments, and what stands between them
    r"""#[^\n]*|'{3}(?:\\.|[^\\])*?(?:'{3}|\\?\Z)|"{3}(?:\\.|[^\\])*?(?:"{3}|\\?\Z)"""
    r"""|'(?:\\.|[^'\\\n])*'?|"(?:\\.|[^"\\\n])*"?|[^#'"]+""",
    re.S,
)
_TURNING = re.compile("[\n{}'\"\u202a-\u202e\u2066-\u2069]")  # and the ends of what they turn
_LOOKUPS = ("getattr", "hasattr")
_ROOTS = frozenset({"os", "sys", "builtins", "importlib", "asyncio", "signal"})
_STARRED = _ROOTS | {name.split(".")[0] for name in _OPENERS}  # whose names, all imported, are not seen
_OWN = "·"  # before a name that the code bound itself


class CodeFinding(msgspec.Struct, frozen=True):
    """One thing that the code would do. `line` counts from 1, 0: of the whole."""

    kind: Kind
    risk: Risk
    line: int
    what: str

    def __str__(self) -> str:
        return f"line {self.line}: {self.what}" if self.line else self.what


def judge_python(code: str) -> list[CodeFinding]:
    """Finds what is dangerous in `code`, by line, at most MAX_FINDINGS; that it is no Python, or too large, is one."""
    if len(code.encode("utf-8", "replace")) > MAX_CODE_BYTES:
        return [CodeFinding("unreadable", "medium", 0, f"the code is larger than {MAX_CODE_BYTES} bytes")]
    found = [
        CodeFinding("unreadable", "high", line, f"the character {ascii(char)[1:-1]} makes it read as other code")
        for line, char in left_open(code)
    ]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(code)
    except SyntaxError as error:
        found.append(CodeFinding("unreadable", "medium", error.lineno or 0, "it is not Python"))
    except (ValueError, RecursionError, MemoryError):
        told = "it is nested too deeply, or contains bytes that are not text"
        found.append(CodeFinding("unreadable", "medium", 0, told))
    else:
        found += _Reader(tree).findings()
    return list(dict.fromkeys(sorted(found, key=lambda finding: finding.line)))[:MAX_FINDINGS]


def left_open(code: str) -> Iterator[tuple[int, str]]:
    """Finds each embedding, override and isolate, with its line, that is open at the end of the line, literal or comment. A
    screen shows the code behind it in another order (CVE-2021-42574). Each value of an f-string is a literal of its own."""
    text = code.replace("\r\n", "\n").replace("\r", "\n")
    line = 1
    for literal in _LITERALS.finditer(text):
        before = text[max(0, literal.start() - 2) : literal.start()].lower()
        ends = "\n{}'\"" if before.removesuffix("r").endswith(("f", "t")) else "\n"
        levels = [[""]]  # of isolates: which one, and the embeddings and overrides in it
        for char in [*_TURNING.findall(literal[0]), ""]:
            if char in ends:
                yield from ((line, one) for level in levels for one in level if one)
                levels = [[""]]
                line += char == "\n"
            elif char in "\u2066\u2067\u2068":
                levels.append([char])
            elif char == "\u2069":
                del levels[max(1, len(levels) - 1) :]
            elif char == "\u202c":
                del levels[-1][max(1, len(levels[-1]) - 1) :]
            elif char not in "{}'\"":
                levels[-1].append(char)


class _Reader:
    """Walks a tree (iteratively, whatever its depth) and knows what each local name stands for."""

    def __init__(self, tree: ast.Module) -> None:
        self._nodes = list(ast.walk(tree))
        self._own = OwnNames(tree)
        self._names: dict[str, str] = {}  # local name -> dotted name, the more dangerous one of several
        self._texts: dict[str, list[str]] = {}  # local name -> the strings that it was given
        self._bindings: Counter[str] = Counter()
        for node in self._nodes:
            if isinstance(node, ast.Import):
                for alias in node.names:
                    top = alias.name.split(".")[0]
                    self._name(alias.asname or top, alias.name if alias.asname else top)
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                for alias in node.names:
                    self._name(alias.asname or alias.name, f"{node.module}.{alias.name}")
            elif isinstance(node, ast.arg):
                self._bindings[node.arg] += 1
            elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                self._bindings[node.id] += 1
        for node in self._nodes:
            if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
                dotted, text = self._dotted(node.value), self._text(node.value)
                if dotted in _PATHS or dotted == "os.environ":
                    self._name(node.targets[0].id, dotted)
                elif text is not None:
                    self._texts.setdefault(node.targets[0].id, []).append(text)

    def _name(self, own: str, dotted: str) -> None:
        before = self._names.get(own)
        if before is None or dotted.split(".")[0] in _ROOTS | _MODULES.keys() or _dangerous(dotted):
            self._names[own] = dotted

    def findings(self) -> Iterator[CodeFinding]:
        inner = {id(node.value) for node in self._nodes if isinstance(node, ast.Attribute)}
        called = {id(node.func) for node in self._nodes if isinstance(node, ast.Call)}
        # `getattr(os, "name")` is judged by the name.
        called |= {id(node.args[0]) for node in self._nodes if isinstance(node, ast.Call) and len(node.args) > 1
                   and isinstance(node.func, ast.Name) and node.func.id in _LOOKUPS}  # fmt: skip
        prose = {
            id(node.value)
            for node in self._nodes
            if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        }
        for node in self._nodes:
            if id(node) in prose:
                continue
            for kind, risk, what in self._of(node, is_whole=id(node) not in inner, is_called=id(node) in called):
                yield CodeFinding(kind, risk, getattr(node, "lineno", 0), what)

    def _of(self, node: ast.AST, *, is_whole: bool, is_called: bool) -> Iterator[tuple[Kind, Risk, str]]:
        match node:
            case ast.Import(names=aliases):
                for alias in aliases:
                    yield from _of_import(alias.name)
            case ast.ImportFrom(module=str(module), names=aliases):
                for alias in aliases:
                    if alias.name == "*" and module.split(".")[0] in _STARRED:
                        yield "escape", "high", f"it imports everything from `{module}`, which hides what it uses"
                    yield from _of_import(f"{module}.{alias.name}")
            case ast.Name(ctx=ast.Load()) | ast.Attribute(ctx=ast.Load()):
                yield from self._of_name(node, is_whole=is_whole, is_called=is_called)
            case ast.Call():
                yield from self._of_call(node)
            case ast.MatchClass(kwd_attrs=attributes):
                for attribute in attributes:
                    yield from _of_looked_up("", attribute)
            case ast.Constant(value=str(text)):
                for match in _URL.finditer(text):
                    risk, reason = judge_host(match[1])
                    if risk == "high":
                        yield "network", risk, f"it names a URL: {reason}"
                if _INNER_TEXT.search(text):
                    yield "escape", "high", "a string names what reaches inside an object"
            case ast.BinOp(op=ast.Add()) if _INNER_TEXT.search(self._text(node) or ""):
                yield "escape", "high", "a string names what reaches inside an object"
            case ast.Assign() | ast.AugAssign() | ast.Delete():
                for target in [node.target] if isinstance(node, ast.AugAssign) else node.targets:
                    place = target.value if isinstance(target, ast.Subscript) else target
                    if self._dotted(place) == "os.environ":
                        yield "environment", "medium", "it changes the environment"

    def _of_name(
        self, node: ast.Name | ast.Attribute, *, is_whole: bool, is_called: bool
    ) -> Iterator[tuple[Kind, Risk, str]]:
        dotted = self._dotted(node)
        name = _short(dotted)
        if is_whole and (found := _dangerous(dotted)) is not None:
            yield *found, f"it uses `{name}`"
        elif not is_called and name in _GUARDED:
            yield *_GUARDED[name], f"it uses `{name}` as a value, which hides what is done with it"
        elif (
            not is_called
            and is_whole
            and _is_module(name)
            and (not dotted.startswith(_OWN) if isinstance(node, ast.Attribute) else node.id in self._names)
        ):
            yield "escape", "high", f"it uses the module `{name}` as a value, which hides what is done with it"
        if isinstance(node, ast.Attribute):
            owner = _short(self._dotted(node.value))
            if node.attr in _ATTRIBUTES:
                yield *_ATTRIBUTES[node.attr], f"it uses `.{node.attr}`"
            elif node.attr == "__dict__" and (_is_module(owner) or owner in _NAMES):
                yield "escape", "high", f"it looks things up in `{owner}` by `__dict__`"

    def _of_call(self, node: ast.Call) -> Iterator[tuple[Kind, Risk, str]]:
        name = _short(self._dotted(node.func))
        arguments = node.args
        keywords = {keyword.arg: keyword.value for keyword in node.keywords}
        if name in _OPENERS and self._opens_to_write(node, 1):
            yield "filesystem", "medium", "it opens a file to write"
        elif name == "getattr" and len(arguments) > 1:
            yield from self._of_lookup(self._dotted(arguments[0]), arguments[1])
        elif name in ("operator.attrgetter", "operator.methodcaller"):
            for wanted in arguments[:1] if name == "operator.methodcaller" else arguments:
                yield from self._of_lookup("builtins", wanted)
        elif name == "numpy.load" and "allow_pickle" in keywords:
            yield "evaluation", "high", "it loads pickled objects"
        elif name == "logging.basicConfig" and "filename" in keywords:
            yield "filesystem", "medium", "it opens a file to write"
        if name in _OPENERS or name in _PATHS:
            for path in self._strings(arguments[0] if arguments else keywords.get("file")):
                judged = judge_path(path) if path else None
                if judged is not None and judged[0] == "high":
                    yield "filesystem", "high", f"it opens a file: {judged[1]}"
        if isinstance(node.func, ast.Attribute):
            method = node.func.attr
            if method == "open" and name not in _OPENERS and name not in _NAMES and self._opens_to_write(node, 0):
                yield "filesystem", "medium", "it opens a file to write"
            elif method in ("execute", "executemany", "executescript") and any(
                map(_DDL.match, self._strings(arguments[0] if arguments else None))
            ):
                yield "database", "high", "it changes the structure of a database"

    def _of_lookup(self, owner: str, wanted: ast.expr) -> Iterator[tuple[Kind, Risk, str]]:
        """A name that is looked up. One that is put together at run time hides what is used."""
        text = self._text(wanted)
        if text is not None:
            yield from _of_looked_up(owner, text)
        elif _is_module(_short(owner)) or owner.split(".")[0] in _MODULES:
            yield "escape", "high", f"it looks up a name in `{owner}` that only shows when it runs"

    def _opens_to_write(self, node: ast.Call, at: int) -> bool:
        if any(isinstance(each, ast.Starred) for each in node.args) or any(each.arg is None for each in node.keywords):
            return True
        mode = next((keyword.value for keyword in node.keywords if keyword.arg == "mode"), None)
        if mode is None and len(node.args) > at:
            mode = node.args[at]
        if mode is None:
            return False
        modes = self._strings(mode)
        is_known = not isinstance(mode, ast.Name) or self._bindings[mode.id] == len(modes)
        return not (modes and is_known) or any(map(_MODE.fullmatch, modes))

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
        if not isinstance(node, ast.Name):
            return ""
        is_own = not isinstance(node.ctx, ast.Load) or node in self._own
        head = self._names.get(node.id) if is_own or node.id not in _BUILTINS else None
        return ".".join([head or f"{_OWN if is_own else ''}{node.id}", *reversed(parts)])

    def _strings(self, node: ast.AST | None) -> list[str]:
        if isinstance(node, ast.Name):
            return self._texts.get(node.id, [])
        if isinstance(node, ast.Constant) and isinstance(node.value, bytes):
            return [node.value.decode("utf-8", "replace")]
        text = self._text(node) if node is not None else None
        return [text] if text is not None else []

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
            elif isinstance(part, ast.Name) and len(self._texts.get(part.id, ())) == 1:
                pieces += self._texts[part.id]
            else:
                return None
        return None


def _of_import(dotted: str) -> Iterator[tuple[Kind, Risk, str]]:
    top = dotted.split(".")[0]
    if top in _MODULES and not _is_harmless(dotted):
        yield *_MODULES[top], f"it imports `{dotted}`"
    elif (found := _dangerous(dotted)) is not None:
        yield *found, f"it uses `{_short(dotted)}`"


def _of_looked_up(owner: str, text: str) -> Iterator[tuple[Kind, Risk, str]]:
    """The findings in names that are looked up in `owner`: `os.system`, `__globals__`."""
    for part in text.split("."):
        if part in _ATTRIBUTES:
            yield *_ATTRIBUTES[part], f"it reaches for `{part}`"
        elif part.lstrip("_") in _ROOTS:
            yield "escape", "high", f"it reaches for the module `{part}`"
    if (found := _dangerous(f"{owner}.{text}" if owner else text)) is not None:
        yield *found, f"it uses `{_short(f'{owner}.{text}')}`"


def _is_module(name: str) -> bool:
    return name in HARMLESS_MODULES or name in _ROOTS or name == "os.path"


def _is_harmless(dotted: str) -> bool:
    return any(dotted == known or dotted.startswith(f"{known}.") for known in _HARMLESS)


def _short(name: str) -> str:
    """A dotted name from the last module in it that matters: `random._os.system` is `os.system`, `builtins.eval` `eval`."""
    parts: Sequence[str] = name.split(".")
    for at in range(len(parts) - 1, 0, -1):
        module = "builtins" if parts[at] == "bltns" else parts[at].lstrip("_")
        if module in _ROOTS:
            parts = [module, *parts[at + 1 :]]
            break
    return ".".join(parts[1:] if parts[0] in ("builtins", "__builtins__") and len(parts) > 1 else parts)


def _dangerous(name: str) -> tuple[Kind, Risk] | None:
    parts = _short(name).split(".")
    known = next((_NAMES[part] for at in range(len(parts), 0, -1) if (part := ".".join(parts[:at])) in _NAMES), None)
    if known is not None or name.startswith(_OWN) or len(parts) == 1:
        return known
    top, first = parts[0], parts[1]
    if _PROCESS.fullmatch(f"{top}.{first}"):
        return "process", "high"
    if first not in _ALLOWED.get(top, (first,)):
        return ("filesystem", "medium") if top == "os" else ("escape", "high")
    if top in _HARMLESS_TOPS and not _is_harmless(".".join(parts)):
        return _MODULES[top]
    within = parts[1:] if top in HARMLESS_MODULES else ()
    names = (name for part in within for name in (part, part.lstrip("_")) if name in sys.stdlib_module_names)
    return next((_MODULES[name] for name in names if name in _MODULES), None)

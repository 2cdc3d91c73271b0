"""Proposed code is judged by what can happen: every form in which the language binds a name, with each guarded one."""

from __future__ import annotations

import ast
import importlib
import itertools
import sys
from types import ModuleType

import pytest

from council.safety.python_code import HARMLESS_MODULES, judge_python

GUARDED = ["os", "sys", "importlib", "builtins", "asyncio", "open", "getattr", "os.system", "eval", "io.open"]
BINDINGS = [
    "o = {}", "[m] = [{}]", "a, *b = {}, 1", "a = b = {}", "o: object = {}", "(o := {})", "if (o := {}): pass",
    "def f(m={}): return m", "def f(*, m={}): return m", "f = lambda m={}: m", "async def f(m={}): return m",
    "for m in ({},): m", "for m in [1, {}]: m", "[m for m in [{}]]", "{{m for m in [{}]}}", "{{k: {} for k in 'a'}}",
    "list(m for m in ({},))", "class K: m = {}", "class K:\n    def f(self, m={}): return m", "d = {{'a': {}}}",
    "d = {{}}\nd['a'] = {}", "class K: pass\nK.m = {}", "def f(): return {}", "def f(): yield {}",
    "def f():\n    yield from [{}]",
    "match {}:\n    case m: m", "match [{}]:\n    case [m]: m", "print({})", "dict(a={})", "list(*[[{}]])", "map({}, 'a')",
    "o = {} if True else None", "o = None or {}", "o = [{}][0]", "({}, 1)[0]", "o = not_there or {}", "assert {}",
    "with open('a.md') as f:\n    f.m = {}", "try:\n    pass\nfinally:\n    o = {}", "def f():\n    global o\n    o = {}",
    "@({})\ndef f(): pass", "o = (lambda: {})()", "while (o := {}): break", "o = f'{{{}}}'", "raise ValueError({})",
    "o = []\no += [{}]", "o = [0]\nfor o[0] in ({},): pass", "d = {{**{{'a': {}}}}}", "o = [*[{}]]", "f(**{{'m': {}}})",
    "class K({}): pass",
    "def a():\n    m = 1\n    def b():\n        nonlocal m\n        m = {}", "class K(metaclass={}): pass",
    "raise ValueError from {}",
    "async def f():\n    async for m in g({}): m", "with g({}) as m: m", "def f(a, m={}, /): return m",
    "x, (y, [z]) = 1, (2, [{}])",
    "match ({}, 1):\n    case (m, _): m", "match {{'k': {}}}:\n    case {{'k': m}}: m", "[m for a in [1] for m in [{}]]",
    "print(m := {})",
    "sorted([1], key={})", "type('K', (), {{'m': {}}})", "@g(m={})\nclass K: pass", "m = [{}] * 3", "m = (lambda x: x)({})",
    "class K:\n    def f(self): self.m = {}", "def f(x):\n    return x if x else {}", "for i, m in enumerate([{}]): m",
    "m = {}; n = m",
    "def f(open={}): return open", "[open for open in [{}]]", "def f(x) -> {}: pass", "async def f():\n    return await g({})",
]  # fmt: skip
OTHER_WAYS = [
    "import logging.config\nlogging.config.dictConfig({})", "import trace\ntrace.Trace().run('x')",
    "import venv\nvenv.create('x')",
    "import fileinput\nfileinput.input('x', inplace=True)", "import asyncio\nasyncio.subprocess.create_subprocess_shell('x')",
    "import wsgiref.simple_server",
    "import pkgutil\npkgutil.resolve_name('os:system')('x')", "import py_compile\npy_compile.compile('x')", "import imp",
    "import os\n[os][0].system('x')",
    "import os\nx = {'a': os}['a']\nx.system('y')", "from os import path as p\np.os.system('x')",
    "import os\nvars(os)['system']('x')",
    "import os\nos.__dict__['system']('x')", "print.__self__.eval('1')",
    "import importlib\nimportlib.import_module('o' + 's').system('x')",
    "import operator, os\noperator.attrgetter('system')(os)('x')", "from builtins import eval as e\ne('1')", "from os import *",
    "().__class__.__bases__[0].__subclasses__()", "import sys\nsys.modules['os'].system('x')",
    "import os\nnext(iter([os])).system('x')",
    "import enum\nenum.bltns.eval('1')", "from enum import bltns as b\nb.eval('1')", "len.__self__.eval('1')",
    "import platform\nplatform.subprocess.run('x')", "from platform import subprocess as s\ns.run('x')",
    "import glob\ngetattr(glob, 'o' + 's').system('x')", "import glob\ngetattr(glob, name).system('x')",
    "import glob\nglob.__dict__['os']", "import glob\ntype(glob).__getattribute__(glob, 'os').system('x')",
    "import glob\nmatch glob:\n    case object(os=m): m.system('x')", "match print:\n    case object(__self__=b): b.eval('1')",
    "import glob, inspect\ndict(inspect.getmembers(glob))['os'].system('x')", "open.__call__('x', 'w')",
    "from operator import attrgetter\nattrgetter('os')(1).system('x')", "locals()['__builtins__']['eval']('1')",
    "__loader__.load_module('os').system('x')", "__spec__.loader.load_module('os').system('x')",
    "import importlib.util\nimportlib.util.find_spec('os').loader.load_module('os')", "m = 'r'\nm = 'w'\nopen('x', m)",
    "import timeit\ntimeit.Timer('import os').timeit()", "import typing\ntyping.ForwardRef('x')._evaluate({}, {}, frozenset())",
    "from unittest.mock import _importer\n_importer('os')", "from pathlib import Path\nw = Path('x').write_text\nw('a')",
    "import os\nopen(os.path.expanduser('~/.ssh/id_rsa'))", "open(file='/etc/shadow')", "open(b'/etc/shadow')",
    "('{0.__glo' + 'bals__}').format(f)", "import string\nstring.Formatter().get_field('0.__globals__', (f,), {})",
    "import os\nos.environ |= {'a': 'b'}", "import urllib.parse\nurllib.request.urlopen('x')", "g.gi_code.co_consts",
    "import zipfile\nzipfile.ZipFile('x', 'w')", "import logging\nlogging.basicConfig(filename='x')",
    "if 0: from re import compile as eval\neval('1')", "eval('1')\nfrom re import compile as eval",
    "def f():\n    from re import compile as eval\neval('1')", "import os as m\nif 0: import json as m\nm.system('x')",
    *(f"import os\nos.{name}('x')" for name in ("abort", "_exit", "dup2", "mknod", "chdir", "sendfile", "setxattr", "utime")),
]  # fmt: skip
# Bindings that never happen, or are undone: what follows is the builtin.
NOT_BOUND = [
    "if 0:\n    {0} = 1", "for {0} in ():\n    pass",
    "while 0:\n    {0} = 1", "try:\n    {0} = 1 / 0\nexcept Exception:\n    pass",
    "0 and ({0} := 4)", "({0} := 1) if 0 else 2", "[({0} := 1) for x in ()]", "f = lambda: ({0} := 1)", "assert 1 or ({0} := 1)",
    "match 1:\n    case 2:\n        {0} = 1", "match 1:\n    case str() as {0}: pass",
    "if 0:\n    def {0}(): pass",
    "if 0:\n    class {0}: pass",
    "with suppress(Exception):\n    {0} = 1 / 0", "{0} = 1\ndel {0}", "def {0}(): pass\ndel {0}", "{0}: object",
    "def f({0}): pass",
    "try:\n    pass\nexcept ValueError as {0}:\n    pass",
    "{0} = 1\ntry:\n    raise ValueError\nexcept ValueError as {0}:\n    pass",
    "def f():\n    global {0}\n    {0} = 1", "class K:\n    {0} = 1", "[{0} for {0} in [1]]", "if 0: import json as {0}",
    "x = 0 and ({0} := 4)", "def f(x=lambda {0}: 0): return {0}",
    "try:\n    from there import {0}\nexcept ImportError:\n    pass", "def f():\n    import json as {0}",
    "d[1 or ({0} := 1)] = 1", "d[0 and ({0} := 1)], x = 1, 2", "a, (*b, d[1 or ({0} := 1)]) = x", "d[1 or ({0} := 1)].a = 1",
    "x = [*d[1 or ({0} := 1)]] = 1", "d[({0} := 1) if 0 else 2] = 1", "d[[{0} := 1 for x in ()]] = 1", "d[lambda {0}: 1] = 1",
    "d[1 or ({0} := 1)] += 1", "d[1 or ({0} := 1)]: int", "d[1 or ({0} := 1)]: int = 1", "x: (1 or ({0} := 1)) = 1",
    "({0}): int", "for d[1 or ({0} := 1)] in (1,):\n    pass", "del d[1 or ({0} := 1)]",
    "with g() as d[1 or ({0} := 1)]:\n    pass", "with g(1 or ({0} := 1)) as {0}_:\n    pass", "(x := 1 or ({0} := 1))",
    "x = (({0} := 1) if 0 else 2)", "x = 1 or ({0} := 1)",
    "match 1:\n    case x if 0 and ({0} := 1): pass", "match []:\n    case [*{0}, 1]: pass", "match 1:\n    case {{**{0}}}: pass",
    "def f(x=1 or ({0} := 1)): pass", "class K(g(1 or ({0} := 1))): pass",
]  # fmt: skip
# Names that are looked up before they are bound, or beyond the scope that binds them: they are the builtins, too.
LOOKED_UP_BEYOND = [
    "def f({0}):\n    class K:\n        o = {0}\n        {0} = 1",
    "def f({0}):\n    class K:\n        if 0: {0} = 1\n        o = {0}",
    "def f({0}):\n    class K:\n        o = {0}\n        for {0} in (): pass",
    "def f({0}):\n    class K:\n        o = {0}\n        def {0}(self): pass",
    "def f({0}):\n    class K:\n        o = {0}\n        import json as {0}",
    "def f({0}):\n    class K:\n        o = {0}\n        ({0} := 1)",
    "def f({0}):\n    class K:\n        o = {0}\n        {0}: object",
    "def f({0}):\n    class K:\n        o = [x for x in {0}]\n        {0} = 1",
    "def f({0}):\n    class K:\n        def g(self, x={0}): pass\n        {0} = 1",
    "def f({0}):\n    class K:\n        class L:\n            o = {0}\n            {0} = 1",
    "def f({0}):\n    class K:\n        match 1:\n            case {0}: pass\n        o = {0}",
    "def f({0}):\n    class K:\n        global {0}\n        o = {0}",
    "def f({0}):\n    def g():\n        global {0}\n        return {0}",
    "def f({0}):\n    def g():\n        nonlocal {0}\n        del {0}\n    g()\n    class K:\n        o = {0}",
    "{0} = (\n    {0}\n)", "({0} :=\n    {0})", "{0}, x = (\n    1,\n    {0})", "x[\n    {0}], {0} = 1, 2",
    "def {0}(\n    x={0}\n): pass", "def {0}(\n    x={0}): pass", "def {0}() -> (\n    {0}\n): pass",
    "@(\n    {0}\n)\ndef {0}(): pass",
    "def now(f): f()\n@now\ndef {0}():\n    return {0}", "class {0}:\n    o = {0}", "class {0}(\n    metaclass={0}\n): pass",
    "def f():\n    ({0}): int\n    return {0}", "f = lambda: {0}\nf()\n{0} = 1", "{0} = f'''\n{{{0}}}'''",
]  # fmt: skip
GUARDED_BUILTINS = ["open", "getattr", "eval", "__import__", "vars"]
IMPORTS = "import os, sys, importlib, builtins, asyncio, io\n"

OWN = ["open", "signal", "code", "getattr_", "os_name", "io", "sys"]
FORMS = [
    "def f({0}, high): return high - {0}", "{0} = 3\nprint({0} + 1)", "for {0} in (1, 2):\n    print({0})",
    "print([{0} for {0} in (1, 2)])", "f = lambda {0}: {0} * 2", "a, {0} = 1, 2\ntotal = a + {0}",
    "class K:\n    def f(self, {0}=1): return {0}", "def f():\n    {0} = 1\n    return [{0}]", "({0} := 4)\nprint({0})",
    "def f(*, {0}): return dict(a={0})", "def f(*{0}): return list({0})", "row = (1, 2)\n{0}, high = row\nprint(high > {0})",
    "d = {{'{0}': 1}}\nprint(d['{0}'])", "class K:\n    {0} = 1\nprint(K.{0})",
    "def f(x):\n    match x:\n        case [{0}, _]: return 1",
    "def f({0}):\n    class K:\n        def g(self): return {0}\n        {0} = 1",
    "def {0}(x):\n    return {0}(x - 1) if x else 0",
    "def f({0}):\n    class K:\n        o = [{0} for _ in (1,)]\n        {0} = 1",
    "def f():\n    {0}: int\n    {0} = 1\n    return {0}",
    "def f(**{0}): return {0}", "with_ = '{0}'\nprint(with_)", "def {0}_of(x): return x\nprint({0}_of)",
]  # fmt: skip
USES = [
    "import os\nprint(os.path.join('a', 'b'))", "import sys\nprint('x', file=sys.stderr)", "text = open('docs/a.md').read()",
    "with open('docs/a.md') as f:\n    print(f.read())", "import os\nhome = os.environ.get('HOME', '')",
    "print(getattr(object(), 'name', None))", "import asyncio\nasyncio.run(main())", "import os\nprint(getattr(os, 'sep'))",
    "import io\nbuffer = io.StringIO()", "import sys\nif sys.version_info > (3, 11):\n    print(1)",
    "from os import path\nprint(path.join('a'))", "import asyncio\nlock = asyncio.Lock()", "import sys\nsys.exit(0)",
    "from pathlib import Path\nprint([p for p in map(Path, ['a'])])",
    "from operator import attrgetter\nsorted([], key=attrgetter('a'))",
    "import os\nprint(hasattr(os, 'sep'))", "import signal\nprint(signal.SIGTERM)", "x = sorted([1], key=lambda v: v)",
]  # fmt: skip
WRAPPED = [
    "{}",
    "def main():\n{i}",
    "class Agent:\n    def run(self):\n{ii}",
    "if True:\n{i}",
    "# comment\n{}\nprint('done')",
]


def wrapped(code: str, form: str) -> str:
    def indented(text: str, by: int) -> str:
        return "\n".join(" " * by + line for line in text.split("\n"))

    return form.replace("{ii}", indented(code, 8)).replace("{i}", indented(code, 4)).replace("{}", code)


def harmless() -> list[str]:
    own = [form.format(name) for form, name in itertools.product(FORMS, OWN)]
    return [*own, *(wrapped(use, form) for use, form in itertools.product(USES, WRAPPED))]


@pytest.mark.parametrize("binding", BINDINGS)
def test_each_guarded_name_as_a_value_is_found_however_it_is_bound(binding: str) -> None:
    codes = [IMPORTS + binding.format(name) for name in GUARDED]
    for code in codes:
        ast.parse(code)
    assert [code for code in codes if not judge_python(code)] == []


def test_other_ways_to_the_same_are_found() -> None:
    assert [code for code in OTHER_WAYS if not judge_python(code)] == []


@pytest.mark.parametrize("binding", NOT_BOUND)
def test_a_builtin_is_the_codes_own_name_only_where_the_code_surely_bound_it(binding: str) -> None:
    codes = [f"{binding.format(name)}\no = {name}\n" for name in GUARDED_BUILTINS]
    for code in codes:
        ast.parse(code)
    assert [code for code in codes if not judge_python(code)] == []


@pytest.mark.parametrize("form", LOOKED_UP_BEYOND)
def test_a_builtin_is_found_where_the_codes_own_name_is_not_what_is_looked_up(form: str) -> None:
    codes = [form.format(name) for name in GUARDED_BUILTINS]
    for code in codes:
        compile(code, "code", "exec")
    assert [code for code in codes if not judge_python(code)] == []


@pytest.mark.parametrize(
    ("code", "line"),
    [
        ("x = 1\nif user != 'b\u202e \u2066# admin\u2069 \u2066':\n    pass", 2),
        ("x = 'a\u2067' # \u2069'", 1),
        ('"""a\n\u2067b\nc\u2069"""', 2),
        ('"""a" \u202bb"""', 1),
        ("# a \u202e b\r# \u202c", 1),
        ("'\u2067\u202e\u202c\u202c'", 1),
        ("x = Rf'''{'\u2067' + y + '\u2069'}'''", 1),
        ("x = (\n'\u2068a", 2),
        ("\u202dx = 1", 1),
    ],
)
def test_a_directional_character_that_is_left_open_is_found_also_where_the_code_does_not_parse(
    code: str, line: int
) -> None:
    found = [finding for finding in judge_python(code) if "makes it read as other code" in finding.what]
    assert {(finding.line, finding.risk) for finding in found} == {(line, "high")}


@pytest.mark.parametrize(
    "code",
    [
        "x = '\u2067\u05d0\u2069'",
        "x = '\u2067\u05d0\"\u05d1\\' \u202b\u05d2\u202c\u2069'  # \u2066a\u2069",
        "'''\n\u202e1\u202c\n\u2067\u202ea\u2069\n'''",
        "x = f'{x}: \u2067\u05d0\u2069'",
        "x = 'a\u2069\u202c'",
    ],
)
def test_a_directional_character_that_is_closed_again_is_nothing(code: str) -> None:
    assert judge_python(code) == []


def test_every_module_of_the_standard_library_that_does_more_than_compute_is_found() -> None:
    acting = sys.stdlib_module_names - HARMLESS_MODULES
    assert {"subprocess", "socket", "ctypes", "pickle", "_thread", "readline"} <= acting
    assert [name for name in acting if not judge_python(f"import {name}")] == []
    assert [name for name in HARMLESS_MODULES if judge_python(f"import {name}\n")] == []


def test_a_module_that_acts_is_found_inside_every_harmless_one_that_holds_it() -> None:
    held = [
        (name, attribute, value.__name__)
        for name in sorted(HARMLESS_MODULES - {"this"})
        for attribute, value in vars(importlib.import_module(name)).items()
        if isinstance(value, ModuleType)
    ]
    acting = [(name, at) for name, at, real in held if real.split(".")[0] in sys.stdlib_module_names - HARMLESS_MODULES]
    doors = [(name, at, {"os": "system", "sys": "modules", "builtins": "eval"}[real])
             for name, at, real in held if real in ("os", "sys", "builtins")]  # fmt: skip
    assert len(acting) > 10
    assert len(doors) > 30
    codes = [f"import {name}\n{name}.{at}.x" for name, at in acting] + [
        f"from {name} import {at} as a" for name, at in acting
    ]
    codes += [f"import {name}\n{name}.{at}.{deed}" for name, at, deed in doors]
    codes += [f"from {name} import {at} as a\na.{deed}" for name, at, deed in doors]
    assert [code for code in codes if not judge_python(code)] == []


def test_of_generated_dangerous_code_nothing_is_missed_and_of_harmless_code_at_most_one_in_fifty_blamed() -> None:
    codes = [IMPORTS, *harmless()]
    blamed = [code for code in codes if judge_python(code)]
    assert len(BINDINGS) * len(GUARDED) >= 200
    assert len(codes) >= 200
    assert not judge_python(IMPORTS)
    assert len(blamed) <= len(codes) * 0.02, blamed

"""Proposed code is judged by what can happen: every form in which the language binds a name, with each guarded one."""

from __future__ import annotations

import ast
import itertools

import pytest

from council.safety.python_code import judge_python

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
]  # fmt: skip
CODES = [binding.format(name) for binding, name in itertools.product(BINDINGS, GUARDED)]
IMPORTS = "import os, sys, importlib, builtins, asyncio, io\n"

OWN = ["open", "signal", "code", "getattr_", "os_name", "io", "sys"]
FORMS = [
    "def f({0}, high): return high - {0}", "{0} = 3\nprint({0} + 1)", "for {0} in (1, 2):\n    print({0})",
    "print([{0} for {0} in (1, 2)])", "f = lambda {0}: {0} * 2", "a, {0} = 1, 2\ntotal = a + {0}",
    "class K:\n    def f(self, {0}=1): return {0}", "def f():\n    {0} = 1\n    return [{0}]", "({0} := 4)\nprint({0})",
    "def f(*, {0}): return dict(a={0})", "def f(*{0}): return list({0})", "row = (1, 2)\n{0}, high = row\nprint(high > {0})",
    "d = {{'{0}': 1}}\nprint(d['{0}'])", "class K:\n    {0} = 1\nprint(K.{0})",
    "def f(x):\n    match x:\n        case [{0}, _]: return 1",
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


@pytest.mark.parametrize("code", CODES)
def test_a_guarded_name_as_a_value_is_found_however_it_is_bound(code: str) -> None:
    ast.parse(IMPORTS + code)
    assert judge_python(IMPORTS + code), code


@pytest.mark.parametrize("code", OTHER_WAYS)
def test_other_ways_to_the_same_are_found(code: str) -> None:
    assert judge_python(code), code


def test_of_generated_dangerous_code_nothing_is_missed_and_of_harmless_code_at_most_one_in_fifty_blamed() -> None:
    codes = harmless()
    blamed = [code for code in codes if judge_python(code)]
    assert len(CODES) >= 200
    assert len(codes) >= 200
    assert len(blamed) <= len(codes) * 0.02, blamed

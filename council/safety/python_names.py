"""The names that Python code binds itself: a parameter `open` is no builtin.

The locals of a function are its own from the start. In a module, a name that nothing has bound yet is looked up among the
builtins: there only a statement of the module itself counts, for what follows it. `if 0: open = 1` binds nothing. A name that a
class binds is looked up like those of a module, past the functions around it. Goes over the tree once, whatever its depth.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from typing import NamedTuple

_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)


class _Scope(NamedTuple):
    """The names that a function, a comprehension or a class binds, and the scope around it."""

    names: set[str]
    within: _Scope | None
    is_class: bool


class OwnNames:
    """Tells of each name in a tree whether it surely stands for what the code itself bound to it."""

    def __init__(self, tree: ast.Module) -> None:
        # By the id of a name: the scope around it, and after how many statements of the module its code runs at the earliest.
        self._places: dict[int, tuple[_Scope | None, int]] = {}
        self._bound: dict[str, int] = {}  # by name: after how many statements of the module it is bound
        unsure: set[str] = set()  # deleted somewhere, or bound by a function for its module
        waiting: list[tuple[ast.AST, _Scope | None, int]] = []
        for before, statement in enumerate(tree.body):
            waiting.append((statement, None, before))
            for name in _surely_bound(statement):
                self._bound.setdefault(name, before + 1)
        while waiting:
            node, around, before = waiting.pop()
            if isinstance(node, ast.Name):
                self._places[id(node)] = around, before
                unsure.update([node.id] if isinstance(node.ctx, ast.Del) else ())
            elif isinstance(node, (ast.Global, ast.ExceptHandler)):
                unsure.update(node.names if isinstance(node, ast.Global) else filter(None, [node.name]))
            inside = around
            if isinstance(node, (*_FUNCTIONS, *_COMPREHENSIONS, ast.ClassDef)):
                inside = _Scope(_names_in(node), around, isinstance(node, ast.ClassDef))
            outside = {id(part) for part in _read_outside(node)}
            is_plain = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and not node.decorator_list
            later = before + (is_plain and around is None)  # such a function runs once it is bound
            for part in _parts(node):
                waiting.append((part, around, before) if id(part) in outside else (part, inside, later))
        self._unsure = unsure

    def __contains__(self, name: ast.Name) -> bool:
        if name.id in self._unsure:
            return False
        scope, before = self._places[id(name)]
        if scope is not None and scope.is_class and name.id in scope.names:
            scope = None  # the functions around a class are not asked for what it binds itself
        while scope is not None:
            if name.id in scope.names and not scope.is_class:
                return True
            scope = scope.within
        return self._bound.get(name.id, before + 1) <= before


def _parts(node: ast.AST) -> Iterator[ast.AST]:
    """The parts of a node; of a function and a comprehension also those of what holds its parameters and loops."""
    for part in ast.iter_child_nodes(node):
        if isinstance(part, (ast.arguments, ast.arg, ast.comprehension)):
            yield from _parts(part)
        else:
            yield part


def _read_outside(node: ast.AST) -> Iterator[ast.AST]:
    """The nodes that are read where a function, a comprehension or a class is made, and not in it."""
    yield from getattr(node, "type_params", ())  # Python 3.12
    if isinstance(node, _FUNCTIONS):
        yield from _parts(node.args)
        if not isinstance(node, ast.Lambda):
            yield from (*node.decorator_list, *filter(None, [node.returns]))
    elif isinstance(node, ast.ClassDef):
        yield from (*node.decorator_list, *node.bases, *node.keywords)
    elif isinstance(node, _COMPREHENSIONS):
        yield node.generators[0].iter


def _names_in(node: ast.AST) -> set[str]:
    if isinstance(node, _COMPREHENSIONS):
        return _targeted([loop.target for loop in node.generators])
    if isinstance(node, ast.ClassDef):
        return set().union(*map(_bound, node.body))
    assert isinstance(node, _FUNCTIONS)
    names = {part.arg for part in ast.iter_child_nodes(node.args) if isinstance(part, ast.arg)}
    return names.union(*map(_bound, [] if isinstance(node, ast.Lambda) else node.body))


def _surely_bound(statement: ast.stmt) -> set[str]:
    match statement:
        case ast.Assign(targets=targets):
            return _targeted(targets)
        case ast.Expr(value=ast.NamedExpr(target=target)):
            return {target.id}
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef() | ast.Import() | ast.ImportFrom():
            return _bound(statement)
    return set()


def _targeted(targets: Iterable[ast.expr]) -> set[str]:
    """The names that are targets themselves. An index of one may bind others or not: `d[1 or (open := 1)] = 1`."""
    names: set[str] = set()
    waiting = list(targets)
    while waiting:
        match waiting.pop():
            case ast.Name(id=name):
                names.add(name)
            case ast.Tuple(elts=elements) | ast.List(elts=elements):
                waiting += elements
            case ast.Starred(value=target):
                waiting.append(target)
    return names


def _bound(node: ast.AST) -> set[str]:
    """The names that a statement binds in its own scope, wherever in it."""
    names: set[str] = set()
    waiting = [node]
    while waiting:
        each = waiting.pop()
        match each:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                names.add(name)
                continue
            case ast.Lambda() | ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
                continue
            case ast.Name(id=name, ctx=ast.Store()):
                names.add(name)
            case ast.alias(name=name, asname=asname):
                names.add(asname or name.split(".")[0])
            case ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)) | ast.MatchMapping(rest=str(name)):
                names.add(name)
            case ast.AnnAssign(value=None, simple=0):  # `(open): str`; `open: str` makes it a name of its scope
                continue
        waiting += ast.iter_child_nodes(each)
    return names

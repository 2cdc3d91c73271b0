"""The names that Python code binds itself: a parameter `open` is no builtin.

The locals of a function are its own from the start. In a module, a name that nothing has bound yet is looked up among the
builtins: there only a statement of the module itself counts, for what follows it. `if 0: open = 1` binds nothing. Goes over
the tree once, whatever its depth.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple

_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)


class _Function(NamedTuple):
    """The locals of a function or a comprehension, and the one around it."""

    names: set[str]
    within: _Function | None


class OwnNames:
    """Tells of each name in a tree whether it surely stands for what the code itself bound to it."""

    def __init__(self, tree: ast.Module) -> None:
        self._around: dict[int, _Function | None] = {}  # by the id of a name
        self._lines: dict[str, int] = {}  # by name: where the module binds it first
        unsure: set[str] = set()  # deleted somewhere, or bound by a function for its module
        for statement in tree.body:
            for name in _surely_bound(statement):
                self._lines.setdefault(name, statement.lineno)
        waiting: list[tuple[ast.AST, _Function | None]] = [(tree, None)]
        while waiting:
            node, around = waiting.pop()
            if isinstance(node, ast.Name):
                self._around[id(node)] = around
                unsure.update([node.id] if isinstance(node.ctx, ast.Del) else ())
            elif isinstance(node, (ast.Global, ast.ExceptHandler)):
                unsure.update(node.names if isinstance(node, ast.Global) else filter(None, [node.name]))
            inside = _Function(_locals(node), around) if isinstance(node, _FUNCTIONS + _COMPREHENSIONS) else around
            outside = {id(part) for part in _read_outside(node)}
            waiting += [(part, around if id(part) in outside else inside) for part in _parts(node)]
        self._unsure = unsure

    def __contains__(self, name: ast.Name) -> bool:
        if name.id in self._unsure:
            return False
        around = self._around[id(name)]
        while around is not None:
            if name.id in around.names:
                return True
            around = around.within
        return self._lines.get(name.id, name.lineno) < name.lineno


def _parts(node: ast.AST) -> Iterator[ast.AST]:
    """The parts of a node; of a function and a comprehension also those of what holds its parameters and loops."""
    for part in ast.iter_child_nodes(node):
        if isinstance(part, (ast.arguments, ast.arg, ast.comprehension)):
            yield from _parts(part)
        else:
            yield part


def _read_outside(node: ast.AST) -> Iterator[ast.AST]:
    """The nodes that are read where a function or a comprehension is made, and not in it."""
    if isinstance(node, _FUNCTIONS):
        yield from _parts(node.args)
        if not isinstance(node, ast.Lambda):
            yield from (*node.decorator_list, *filter(None, [node.returns]))
    elif isinstance(node, _COMPREHENSIONS):
        yield node.generators[0].iter


def _locals(node: ast.AST) -> set[str]:
    if isinstance(node, _COMPREHENSIONS):
        return {name for loop in node.generators for name in _bound(loop.target)}
    assert isinstance(node, _FUNCTIONS)
    names = {part.arg for part in ast.iter_child_nodes(node.args) if isinstance(part, ast.arg)}
    return names.union(*map(_bound, [] if isinstance(node, ast.Lambda) else node.body))


def _surely_bound(statement: ast.stmt) -> set[str]:
    match statement:
        case ast.Assign(targets=targets):
            return set().union(*map(_bound, targets))
        case ast.Expr(value=ast.NamedExpr(target=target)):
            return {target.id}
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef() | ast.Import() | ast.ImportFrom():
            return _bound(statement)
    return set()


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
            case ast.AnnAssign(value=None):
                continue
        waiting += ast.iter_child_nodes(each)
    return names

"""The names that Python code binds itself, and where: a parameter `open` is no builtin.

In a module or a class, a name that nothing has bound yet is looked up among the builtins. So a binding counts there only
for what follows it in its own block: `if 0: open = 1` binds nothing. The locals of a function are its own from the start.
Goes over the tree once, whatever its depth.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Literal, NamedTuple


class _Block:
    def __init__(self, within: _Block | None = None) -> None:
        self.within = within

    def holds(self, inner: _Block | None) -> bool:
        while inner is not None and inner is not self:
            inner = inner.within
        return inner is self


class _Scope:
    def __init__(self, kind: Literal["module", "class", "function", "comprehension"], within: _Scope | None) -> None:
        self.kind = kind
        self.within = within
        self.bound: dict[str, list[tuple[int, _Block]]] = {}

    @property
    def has_locals(self) -> bool:
        return self.kind in ("function", "comprehension")


class _Place(NamedTuple):
    """`sure`: a walrus here runs whenever its block does."""

    scope: _Scope
    block: _Block
    sure: bool = False

    def bind(self, name: str, line: int) -> None:
        self.scope.bound.setdefault(name, []).append((line, self.block))

    def deeper(self) -> _Place:
        return _Place(self.scope, _Block(self.block))


class OwnNames:
    """Tells of each name in a tree whether it stands for what the code itself bound to it."""

    def __init__(self, tree: ast.Module) -> None:
        self._places: dict[int, _Place] = {}
        self._unsure: set[str] = set()  # deleted somewhere, or bound by a function for its module
        top = _Place(_Scope("module", None), _Block())
        waiting: list[tuple[ast.AST, _Place]] = [(statement, top) for statement in tree.body]
        while waiting:
            node, place = waiting.pop()
            waiting += self._parts(node, place)

    def __contains__(self, name: ast.Name) -> bool:
        place = self._places[id(name)]
        scope: _Scope | None = place.scope if name.id not in self._unsure else None
        while scope is not None:
            bound = scope.bound.get(name.id, ()) if scope.kind != "class" or scope is place.scope else ()
            if bound and scope.has_locals:
                return True
            if any(line < name.lineno and block.holds(place.block) for line, block in bound):
                return True
            scope = scope.within
        return False

    def _parts(self, node: ast.AST, place: _Place) -> Iterator[tuple[ast.AST, _Place]]:
        match node:
            case ast.Name(id=name):
                self._places[id(node)] = place
                if isinstance(node.ctx, ast.Store):
                    place.bind(name, node.lineno)
                elif isinstance(node.ctx, ast.Del):
                    self._unsure.add(name)
            case ast.Global(names=names):
                self._unsure.update(names)
            case ast.Import(names=aliases) | ast.ImportFrom(names=aliases):
                for alias in aliases:
                    place.bind(alias.asname or alias.name.split(".")[0], node.lineno)
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.Lambda():
                yield from self._of_function(node, place)
            case ast.ClassDef(name=name):
                place.bind(name, node.lineno)
                inside = _Place(_Scope("class", place.scope), _Block(place.block))
                for part in ast.iter_child_nodes(node):
                    yield part, inside if isinstance(part, ast.stmt) else place
            case ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
                inside = _Place(_Scope("comprehension", place.scope), place.block)
                for part in ast.iter_child_nodes(node):
                    if not isinstance(part, ast.comprehension):
                        yield part, inside
                for number, loop in enumerate(node.generators):
                    yield loop.iter, inside if number else place
                    yield from ((part, inside) for part in (loop.target, *loop.ifs))
            case ast.NamedExpr(target=target, value=value):
                scope = place.scope
                while scope.kind == "comprehension" and scope.within is not None:
                    scope = scope.within
                if scope.has_locals or place.sure:
                    _Place(scope, place.block).bind(target.id, target.lineno)
                yield value, place
            case ast.ExceptHandler(name=str(name)):
                self._unsure.add(name)  # unbound again at the handler's end
                yield from _within(node, place)
            case ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)) | ast.MatchMapping(rest=str(name)):
                place.bind(name, node.lineno)
                yield from _within(node, place)
            case ast.AnnAssign(value=None, annotation=annotation):
                yield annotation, place
            case ast.AugAssign(target=ast.Name(), value=value):
                yield value, place
            case _:
                yield from _within(node, place)

    def _of_function(
        self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda, place: _Place
    ) -> Iterator[tuple[ast.AST, _Place]]:
        inside = _Place(_Scope("function", place.scope), _Block(place.block))
        for part in ast.iter_child_nodes(node.args):
            if isinstance(part, ast.arg):
                inside.bind(part.arg, part.lineno)
                yield from ((annotation, place) for annotation in ast.iter_child_nodes(part))
            else:
                yield part, place  # a default is read where the function is made
        if isinstance(node, ast.Lambda):
            yield node.body, inside
            return
        place.bind(node.name, node.lineno)
        yield from ((statement, inside) for statement in node.body)
        yield from ((part, place) for part in (*node.decorator_list, *filter(None, [node.returns])))


def _within(node: ast.AST, place: _Place) -> Iterator[tuple[ast.AST, _Place]]:
    """The parts of any other node. Each list of statements that may not run is a block of its own. So is each handler and
    each case, with its pattern. What a loop or a `with` binds is bound in its body."""
    here = _Place(place.scope, place.block, isinstance(node, ast.stmt) and not isinstance(node, ast.Assert))
    body = place.deeper()
    for field, value in ast.iter_fields(node):
        if isinstance(value, list):
            inside = body if field == "body" else place.deeper()
            for part in value:
                if isinstance(part, ast.withitem):
                    yield part.context_expr, here
                    yield from ((bound, body) for bound in [part.optional_vars] if bound)
                elif isinstance(part, ast.ExceptHandler | ast.match_case):
                    yield part, place.deeper()
                elif isinstance(part, ast.AST):
                    yield part, inside if isinstance(part, ast.stmt) else here
        elif isinstance(value, ast.AST):
            is_of_loop = field == "target" and isinstance(node, ast.For | ast.AsyncFor)
            yield value, body if is_of_loop else here

"""Patterns of code, compared as syntax: layout, comments, quotes and parentheses do not matter.

``...`` in a pattern stands for anything. In a list of arguments, elements, operands or statements
it stands for any number of them, elsewhere for one expression. Among the arguments of a call it
also stands for all keywords that the pattern does not name. Examples: ``f(...)``, ``f(x, ...)``,
``if late: ...``, ``x = ...``, ``"key": ...``.
"""

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cache
from textwrap import dedent
from typing import Any, cast

_Place = tuple[int, int]  # line and column of a ``...`` in its pattern
Taken = dict[_Place, list[ast.AST]]  # what each ``...`` was matched with
_REST = ast.Expr(ast.Constant(..., lineno=0, col_offset=0))  # ends every list of statements
_NO_KEY = ast.Name("**")  # the key of ``{**others}``


class Kind(Enum):
    """What a piece of code can be. ``x = 1`` can be a statement or an argument."""

    STATEMENTS = "statements"
    EXPRESSION = "an expression"
    KEYWORD = "an argument"
    ITEM = "an item of a dictionary"
    HANDLER = "an except clause"


@dataclass(frozen=True)
class Found:
    """A match of a pattern: ``count`` nodes of a list, or the only node of a field.

    ``trail``: the nodes from the module down to the node that has the ``field``. ``index``: None
    if the field is not a list.
    """

    kind: Kind
    trail: tuple[ast.AST, ...]
    field: str
    index: int | None
    count: int
    taken: Taken

    @property
    def node(self) -> ast.AST:
        """The node, or the first one of several."""
        value = getattr(self.trail[-1], self.field)
        return cast("ast.AST", value if self.index is None else value[self.index])

    @property
    def line(self) -> int:
        """The number of its first line."""
        return int(getattr(self.node, "lineno", 0))


@cache
def read(code: str) -> dict[Kind, list[ast.AST]]:
    """Return the nodes of ``code`` for each kind that it can be. Raises SyntaxError."""
    text = dedent(code).strip()
    kinds: dict[Kind, list[ast.AST]] = {}
    for kind, frame in (
        (Kind.STATEMENTS, "{}"),
        (Kind.KEYWORD, "_({})"),
        (Kind.ITEM, "{{{}}}"),
        (Kind.HANDLER, "try: ...\n{}"),
    ):
        try:
            rows = ast.parse(frame.format(text)).body
        except SyntaxError:
            continue
        match kind, rows:
            case Kind.STATEMENTS, [ast.Expr(value)]:
                kinds[Kind.EXPRESSION] = [value]
            case Kind.STATEMENTS, _:
                kinds[kind] = [*rows]
            case Kind.KEYWORD, [ast.Expr(ast.Call(args=[], keywords=[keyword]))]:
                kinds[kind] = [keyword]
            case Kind.ITEM, [ast.Expr(ast.Dict(keys=[key], values=[value]))]:
                kinds[kind] = [key or _NO_KEY, value]
            case Kind.HANDLER, [ast.Try(handlers=[handler], orelse=[], finalbody=[])]:
                kinds[kind] = [handler]
    if not any(kinds.values()):
        raise SyntaxError(f"not Python: {code!r}")
    return kinds


def search(code: str, trail: tuple[ast.AST, ...]) -> Iterator[Found]:
    """Yield every match below the last node of ``trail``."""
    for kind, nodes in read(code).items():
        yield from _below(kind, nodes, trail)


def _below(kind: Kind, nodes: list[ast.AST], trail: tuple[ast.AST, ...]) -> Iterator[Found]:
    parent = trail[-1]
    if kind is Kind.ITEM and isinstance(parent, ast.Dict):
        for index, (key, value) in enumerate(zip(parent.keys, parent.values, strict=True)):
            for taken in _first(_pairs([(nodes[0], key or _NO_KEY), (nodes[1], value)])):
                yield Found(kind, trail, "values", index, 1, taken)
    for field, value in ast.iter_fields(parent):
        row = isinstance(value, list)
        for index, child in enumerate(value if row else [value]):
            if not isinstance(child, ast.AST):
                continue
            if kind is Kind.STATEMENTS and isinstance(child, ast.stmt) and row:
                for taken in _first(_rows([*nodes, _REST], value[index:])):
                    count = len(value) - index - len(taken.pop((0, 0)))
                    yield Found(kind, trail, field, index, count, taken)
            elif kind not in (Kind.STATEMENTS, Kind.ITEM):
                for taken in _first(_fits(nodes[0], child)):
                    yield Found(kind, trail, field, index if row else None, 1, taken)
            yield from _below(kind, nodes, (*trail, child))


def search_text(text: str, trail: tuple[ast.AST, ...]) -> Iterator[Found]:
    """Yield every string below the last node of ``trail`` that contains ``text`` once."""
    for field, value in ast.iter_fields(trail[-1]):
        row = isinstance(value, list)
        for index, child in enumerate(value if row else [value]):
            match child:
                case ast.Constant(str() as found) if found.count(text) == 1:
                    yield Found(Kind.EXPRESSION, trail, field, index if row else None, 1, {})
                case ast.AST():
                    yield from search_text(text, (*trail, child))


def filled(nodes: Sequence[ast.AST], taken: Taken) -> list[ast.AST]:
    """Replace each ``...`` in ``nodes`` by what the ``...`` of the same number was matched with.

    Raises ValueError if ``nodes`` has more of them.
    """
    holes = sorted(_position(n) for node in nodes for n in ast.walk(node) if _is_constant(n))
    if not holes:
        return list(nodes)
    if len(holes) > len(taken):
        raise ValueError(f"it has {len(holes)} `...`, and the code has {len(taken)}")
    return _filled_row(
        nodes, {hole: taken[each] for hole, each in zip(holes, sorted(taken), strict=False)}
    )


def _filled_row(nodes: Sequence[ast.AST], taken: Taken) -> list[ast.AST]:
    row: list[ast.AST] = []
    for node in nodes:
        row += taken[_position(node)] if _is_anything(node) else [_filled(node, taken)]
    return row


def _filled(node: ast.AST, taken: Taken) -> ast.AST:
    new: dict[str, Any] = {}
    for field, value in ast.iter_fields(node):
        if isinstance(value, list):
            new[field] = _filled_row(value, taken)
        elif isinstance(value, ast.AST) and _is_anything(value):
            [new[field]] = taken[_position(value)]
        else:
            new[field] = _filled(value, taken) if isinstance(value, ast.AST) else value
    if isinstance(node, ast.Call):
        given = new["args"]
        new["args"] = [each for each in given if not isinstance(each, ast.keyword)]
        new["keywords"] += [each for each in given if isinstance(each, ast.keyword)]
    return ast.copy_location(type(node)(**new), node)


def alike(one: object, other: object) -> bool:
    """Return whether two trees, lists of trees or values are the same program."""
    if one is other:
        return True
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(alike, one, other))
    if isinstance(one, ast.AST):
        return type(one) is type(other) and all(
            alike(getattr(one, field, None), getattr(other, field, None))
            for field in one._fields
            if field != "kind"  # u"" is ""
        )
    return type(one) is type(other) and one == other


def _is_constant(node: object) -> bool:
    return isinstance(node, ast.Constant) and node.value is ...


def _is_anything(node: object) -> bool:
    return _is_constant(node.value if isinstance(node, ast.Expr) else node)


def _position(node: ast.AST) -> _Place:
    inner = node.value if isinstance(node, ast.Expr) else node
    return cast("ast.Constant", inner).lineno, cast("ast.Constant", inner).col_offset


def _first(found: Iterator[Taken]) -> Iterator[Taken]:
    yield from (taken for _, taken in zip(range(1), found, strict=False))


def _fits(pattern: object, node: object) -> Iterator[Taken]:
    """Yield what each ``...`` stands for, for every way in which ``node`` matches ``pattern``."""
    if isinstance(pattern, list) and isinstance(node, list):
        yield from _rows(pattern, node)
    elif _is_constant(pattern):
        if isinstance(node, ast.expr):
            yield {_position(cast("ast.AST", pattern)): [node]}
    elif isinstance(pattern, ast.AST):
        if type(pattern) is not type(node):
            return
        if isinstance(pattern, ast.Call) and any(map(_is_constant, pattern.args)):
            yield from _calls(pattern, cast("ast.Call", node))
        else:
            fields = [field for field in pattern._fields if field != "kind"]
            pairs = [(getattr(pattern, f, None), getattr(node, f, None)) for f in fields]
            yield from _pairs(pairs)
    elif type(pattern) is type(node) and pattern == node:
        yield {}


def _calls(pattern: ast.Call, call: ast.Call) -> Iterator[Taken]:
    named = {each.arg: each for each in pattern.keywords}
    ours = {each.arg: each for each in call.keywords if each.arg in named}
    if ours.keys() != named.keys():
        return
    others: list[ast.AST] = [each for each in call.keywords if each.arg not in named]
    last = max(_position(each) for each in pattern.args if _is_constant(each))
    pairs: list[tuple[object, object]] = [(pattern.func, call.func), (pattern.args, call.args)]
    for taken in _pairs([*pairs, *((named[name], ours[name]) for name in named)]):
        yield taken | {last: taken[last] + others}


def _pairs(pairs: Sequence[tuple[object, object]]) -> Iterator[Taken]:
    if not pairs:
        yield {}
        return
    for taken in _fits(*pairs[0]):
        for others in _pairs(pairs[1:]):
            yield taken | others


def _rows(pattern: Sequence[ast.AST], row: Sequence[ast.AST]) -> Iterator[Taken]:
    if not pattern:
        if not row:
            yield {}
        return
    first, rest = pattern[0], pattern[1:]
    if _is_anything(first):
        for length in range(len(row) + 1):
            for others in _rows(rest, row[length:]):
                yield {_position(first): list(row[:length])} | others
    elif row:
        for taken in _fits(first, row[0]):
            for others in _rows(rest, row[1:]):
                yield taken | others

"""Where a mutation changes the code: a module, a function or class in it, a piece of its code.

``Place("shoal.master.engine.engine")["_store"].drop("await uow.fence(...)")`` names

- the module as an import does, so that a search for its imports finds it here, too,
- the end of the qualified name of the function or class: ``_store`` or ``Engine._store``,
- the code as ``pattern`` reads it. It must occur exactly once in that function or class.
"""

import ast
import tomllib
from collections.abc import Callable, Iterable, Iterator
from copy import copy
from dataclasses import dataclass, replace
from difflib import SequenceMatcher, get_close_matches
from functools import cache, lru_cache
from pathlib import Path
from typing import cast

from tests.mutations import pattern
from tests.mutations.pattern import Found, Kind
from tests.mutations.splices import changed_text

_NAMED = 3  # candidates in an error
_SHOWN = 100  # characters of one of them


class DoesNotApply(Exception):
    """The code has changed, and the mutation has to follow."""


@dataclass(frozen=True)
class Place:
    """A module, or the functions and classes in it whose qualified name ends with ``scope``."""

    module: str
    scope: str = ""

    def __getitem__(self, scope: str) -> "Place":
        return Place(self.module, scope)

    def drop(self, code: str) -> "Edit":
        """Remove statements, an argument, an element, an operand or an item of a dictionary."""
        return Edit(self, code, None)

    def replace(self, code: str, new: str) -> "Edit":
        """Replace ``code``. The n-th ``...`` in ``new`` is what the n-th in ``code`` matches."""
        return Edit(self, code, new)

    def never(self, condition: str) -> "Edit":
        """Replace a condition by False."""
        return Edit(self, condition, "False")

    def always(self, condition: str) -> "Edit":
        """Replace a condition by True."""
        return Edit(self, condition, "True")

    def replace_text(self, text: str, new: str) -> "Edit":
        """Replace a part of a string, for example of a shell script or a regular expression."""
        return Edit(self, text, new, is_text=True)


@dataclass(frozen=True)
class Edit:
    """A change of the only piece of code in ``place`` that matches ``code``.

    ``new``: None removes the code. ``is_text``: ``code`` is a part of a string.
    """

    place: Place
    code: str
    new: str | None
    is_text: bool = False

    def file(self, root: Path) -> Path:
        """Return the module's file in the tree at ``root``. Raises DoesNotApply."""
        return _file(root, self.place)

    def changed(self, text: str, file: str) -> str:
        """Return the changed ``text`` of the module. Raises DoesNotApply."""
        tree = _tree(text)
        found = _copied(self._find(tree, file))
        try:
            if self.is_text:
                _change_text(found, self.code, self.new or "")
            else:
                _change(found, self.new)
            return changed_text(text, tree, cast("ast.Module", found.trail[0]))
        except (SyntaxError, ValueError) as error:
            instead = "be dropped" if self.new is None else f"become `{self.new}`"
            raise DoesNotApply(f"{file}: `{self.code}` cannot {instead}: {error}") from None

    def _find(self, tree: ast.Module, file: str) -> Found:
        search = pattern.search_text if self.is_text else pattern.search
        scopes = list(_scopes(tree, self.place.scope))
        try:
            found = [each for scope in scopes for each in search(self.code, scope)]
            elsewhere = [] if found else list(search(self.code, (tree,)))
        except SyntaxError as error:
            raise DoesNotApply(str(error)) from None
        if len(found) == 1:
            return found[0]
        where = f"{file} has" if not self.place.scope else f"{self.place.scope!r} in {file} has"
        if found:
            lines = ", ".join(str(each.line) for each in found)
            raise DoesNotApply(
                f"{where} `{self.code}` {len(found)} times, in lines {lines}; include more of "
                "the code around it"
            )
        moved = [f"`{self.code}` stands in {_name(e.trail)}, line {e.line}" for e in elsewhere]
        if not scopes:
            names = [_name(trail) for trail in _defined(tree)]
            near = _near(self.place.scope, names, lambda name: name.rpartition(".")[2])
            raise DoesNotApply(
                f"{file} has no function or class {self.place.scope!r}" + _hint(near, moved)
            )
        near = [f"line {line}: `{code}`" for line, code in self._similar(scopes)]
        raise DoesNotApply(f"{where} no `{self.code}`" + _hint(near, moved))

    def _similar(self, scopes: Iterable[tuple[ast.AST, ...]]) -> list[tuple[int, str]]:
        """Return the most similar pieces of code of the same kind, with their lines."""
        kind: type[ast.AST] = ast.Constant
        if not self.is_text:
            kind = ast.expr if Kind.EXPRESSION in pattern.read(self.code) else ast.stmt
        rated: dict[tuple[int, str], float] = {}
        for node in (node for trail in scopes for node in ast.walk(trail[-1])):
            if isinstance(node, kind):
                text = ast.unparse(node)
                if len(text) <= max(_SHOWN, 2 * len(self.code)):
                    likeness = SequenceMatcher(None, self.code, text).ratio()
                    rated[getattr(node, "lineno", 0), text[:_SHOWN]] = likeness
        return sorted(rated, key=lambda each: -rated[each])[:_NAMED]


@lru_cache(maxsize=32)
def _tree(text: str) -> ast.Module:
    return ast.parse(text)


@cache
def folders(root: Path) -> tuple[Path, ...]:
    """Return the folders from which the modules of the tree at ``root`` are imported."""
    project = tomllib.loads((root / "pyproject.toml").read_text())
    names = project["tool"]["hatch"]["build"]["dev-mode-dirs"]
    return tuple(root / name for name in [*names, "."])


def _file(root: Path, place: Place) -> Path:
    path = Path(*place.module.split("."))
    for folder in folders(root):
        for file in (folder / path.with_suffix(".py"), folder / path / "__init__.py"):
            if file.is_file():
                return file
    known = [
        ".".join(file.relative_to(folder).with_suffix("").parts).removesuffix(".__init__")
        for folder in folders(root)[:-1]
        for file in folder.rglob("*.py")
    ]
    near = _near(place.module, known, lambda name: name.rpartition(".")[2])
    raise DoesNotApply(f"there is no module {place.module}" + _hint(near, []))


@lru_cache(maxsize=32)
def _defined(tree: ast.Module) -> tuple[tuple[ast.AST, ...], ...]:
    """Return the nodes from the module down to each function and class."""
    return tuple(_definitions((tree,)))


def _definitions(trail: tuple[ast.AST, ...]) -> Iterator[tuple[ast.AST, ...]]:
    for child in ast.iter_child_nodes(trail[-1]):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield (*trail, child)
        if not isinstance(child, ast.expr):
            yield from _definitions((*trail, child))


def _scopes(tree: ast.Module, name: str) -> Iterator[tuple[ast.AST, ...]]:
    if not name:
        yield (tree,)
        return
    inside: set[ast.AST] = set()  # a function in another one of its name is not searched twice
    for trail in _defined(tree):
        if f".{_name(trail)}".endswith(f".{name}") and not inside.intersection(trail):
            inside.add(trail[-1])
            yield trail


def _name(trail: Iterable[ast.AST]) -> str:
    names = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    return ".".join(node.name for node in trail if isinstance(node, names)) or "the module"


def _near(wanted: str, known: Iterable[str], last: Callable[[str], str]) -> list[str]:
    """Return the names most similar to ``wanted``, those with the same last part first."""
    names = sorted(set(known))
    same = [name for name in names if last(name) == last(wanted)]
    like = {last(name) for name in names}
    close = get_close_matches(last(wanted), like, _NAMED, 0.6)
    others = [name for part in close for name in names if last(name) == part]
    return list(dict.fromkeys([*same, *get_close_matches(wanted, names, 1, 0.8), *others]))[:_NAMED]


def _hint(near: list[str], moved: list[str]) -> str:
    meant = f"; did you mean {' or '.join(near)}?" if near else ""
    return meant + "".join(f"; {each}" for each in moved[:_NAMED])


def _change(found: Found, code: str | None) -> None:
    """Change the tree to which ``found`` belongs. Raises SyntaxError or ValueError."""
    *outer, parent = found.trail
    field, index = found.field, found.index
    kinds = {} if code is None else pattern.read(code)
    kind = found.kind
    if kind is Kind.EXPRESSION and isinstance(parent, ast.Expr) and kind not in kinds:
        # The expression is a whole statement: change the statement.
        kind = Kind.STATEMENTS
        field, index, parent = _index(outer[-1], parent)
    if kind is Kind.STATEMENTS and Kind.EXPRESSION in kinds:
        kinds = {kind: [ast.Expr(cast("ast.expr", each)) for each in kinds[Kind.EXPRESSION]]}
    if code is not None and kind not in kinds:
        raise ValueError(f"the code is {kind.value}, and so must be its replacement")
    new = pattern.filled(kinds.get(kind, []), found.taken)
    row = getattr(parent, field)
    if kind is Kind.ITEM and isinstance(parent, ast.Dict) and index is not None:
        parent.keys[index : index + 1] = new[:1]  # type: ignore[assignment]
        row[index : index + 1] = new[1:]
    elif index is None and new:
        setattr(parent, field, new[0])
    elif index is None:
        raise ValueError("its place cannot be empty; use replace()")
    else:
        row[index : index + found.count] = new
    if kind is Kind.STATEMENTS and not row:
        row.append(ast.Pass())
    if isinstance(parent, ast.BoolOp) and len(parent.values) == 1:
        _become(outer[-1], parent, parent.values[0])


def _change_text(found: Found, text: str, new: str) -> None:
    node = cast("ast.Constant", found.node)
    _become(found.trail[-1], node, ast.Constant(cast("str", node.value).replace(text, new)))


def _copied(found: Found) -> Found:
    """Return the same place in a copy of the tree. The copy shares every unaffected node."""
    trail: list[ast.AST] = []
    for node in found.trail:
        trail.append(copy(node))
        for field, value in ast.iter_fields(node):
            if isinstance(value, list):
                setattr(trail[-1], field, [*value])
        if len(trail) > 1:
            _become(trail[-2], node, trail[-1])
    return replace(found, trail=tuple(trail))


def _index(parent: ast.AST, child: ast.AST) -> tuple[str, int, ast.AST]:
    for field, value in ast.iter_fields(parent):
        if isinstance(value, list) and child in value:
            return field, value.index(child), parent
    raise AssertionError("statements stand in rows")


def _become(parent: ast.AST, child: ast.AST, other: ast.AST) -> None:
    for field, value in ast.iter_fields(parent):
        if value is child:
            setattr(parent, field, other)
        elif isinstance(value, list) and child in value:
            value[value.index(child)] = other

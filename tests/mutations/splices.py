"""The text of a changed program: only the code that differs is rewritten.

New code is padded with blank lines to the length of the code that it replaces, so tracebacks show
the line numbers of the original file.
"""

import ast
from collections.abc import Sequence
from dataclasses import dataclass

from tests.mutations.pattern import alike

_Nodes = Sequence[ast.expr] | Sequence[ast.stmt]


@dataclass(frozen=True)
class _Splice:
    """Replace ``old``, consecutive statements or one expression, by ``new``."""

    old: _Nodes
    new: _Nodes


def changed_text(text: str, old: ast.Module, new: ast.Module) -> str:
    """Return ``text``, whose tree is ``old``, changed into a program whose tree is ``new``.

    The trees may share nodes.

    Raises ValueError if ``new`` is not a valid program.
    """
    source = text.encode()
    starts = [0]
    for line in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    splices = _Difference(source, starts).of(old, new)
    if splices is None:
        raise ValueError("no module would be left")
    for splice in reversed(splices):
        first, last = splice.old[0], splice.old[-1]
        begin = starts[_first_line(first) - 1] + first.col_offset
        end = starts[(last.end_lineno or 0) - 1] + (last.end_col_offset or 0)
        source = source[:begin] + _written(splice, source[begin:end].count(b"\n")) + source[end:]
    changed = source.decode()
    try:
        read = ast.parse(changed).body
    except SyntaxError:
        read = []
    # The text of a statement that both trees share has not changed.
    shared = {id(each) for each in old.body}
    pairs = zip(read, new.body, strict=False)
    if len(read) != len(new.body) or not all(
        id(wanted) in shared or alike(found, wanted) for found, wanted in pairs
    ):
        raise ValueError("the result is not valid Python")
    return changed


def _first_line(node: ast.stmt | ast.expr) -> int:
    decorators: list[ast.expr] = getattr(node, "decorator_list", [])
    return min([node.lineno, *(each.lineno for each in decorators)])


def _written(splice: _Splice, breaks: int) -> bytes:
    lines = [line for node in splice.new for line in ast.unparse(node).split("\n")]
    blank = "\n" * (breaks + 1 - max(1, len(lines)))
    if isinstance(splice.old[0], ast.expr):
        return f"({lines[0]}{blank})".encode()
    return (("\n" + " " * splice.old[0].col_offset).join(lines) + blank).encode()


class _Difference:
    """Finds the smallest pieces in which two trees differ."""

    def __init__(self, source: bytes, starts: Sequence[int]) -> None:
        self._source, self._starts = source, starts

    def of(self, old: ast.AST, new: ast.AST) -> list[_Splice] | None:
        """Return the splices in order, or None if the parent node has to be rewritten."""
        # Nodes in an f-string have no usable positions before Python 3.12.
        if type(old) is not type(new) or isinstance(old, ast.JoinedStr):
            return self._whole(old, new)
        found: list[_Splice] = []
        for field in old._fields:
            before, after = getattr(old, field, None), getattr(new, field, None)
            if alike(before, after):
                continue
            splices = self._of_field(before, after)
            if splices is None:
                return self._whole(old, new)
            found += splices
        return sorted(found, key=lambda each: (each.old[0].lineno, each.old[0].col_offset))

    def _of_field(self, old: object, new: object) -> list[_Splice] | None:
        if isinstance(old, ast.AST) and isinstance(new, ast.AST):
            return self.of(old, new)
        if not isinstance(old, list) or not isinstance(new, list):
            return None
        if any(isinstance(each, ast.stmt) for each in old):
            return self._of_statements(old, new)
        return self._of_each(old, new)

    def _of_each(self, old: list[ast.AST], new: list[ast.AST]) -> list[_Splice] | None:
        if len(old) != len(new):
            return None
        found: list[_Splice] = []
        for before, after in zip(old, new, strict=True):
            splices = [] if alike(before, after) else self.of(before, after)
            if splices is None:
                return None
            found += splices
        return found

    def _of_statements(self, old: list[ast.stmt], new: list[ast.stmt]) -> list[_Splice] | None:
        same = 0  # statements at the beginning
        while same < min(len(old), len(new)) and alike(old[same], new[same]):
            same += 1
        end = 0  # statements at the end
        while end < min(len(old), len(new)) - same and alike(old[-1 - end], new[-1 - end]):
            end += 1
        if same + end == len(old):  # an insertion: take a neighbour along
            same, end = (same - 1, end) if same else (same, end - 1)
        before, after = old[same : len(old) - end], new[same : len(new) - end]
        if len(before) == len(after):
            return self._of_each([*before], [*after])
        # A body must not be empty, and `elif` is not a statement that can be cut out.
        if not new or any(map(self._is_elif, before)):
            return None
        return [_Splice(before, after)]

    def _whole(self, old: ast.AST, new: ast.AST) -> list[_Splice] | None:
        if isinstance(old, ast.expr) and isinstance(new, ast.expr):
            inseparable = isinstance(old, ast.Starred | ast.Slice)
            if inseparable or isinstance(new, ast.Starred | ast.Slice):
                return None
            is_target = isinstance(getattr(old, "ctx", None), ast.Store | ast.Del)
            return None if is_target else [_Splice([old], [new])]
        if isinstance(old, ast.stmt) and isinstance(new, ast.stmt) and not self._is_elif(old):
            return [_Splice([old], [new])]
        return None

    def _is_elif(self, node: ast.stmt) -> bool:
        begin = self._starts[node.lineno - 1] + node.col_offset
        return isinstance(node, ast.If) and self._source.startswith(b"elif", begin)

"""Draw a DAG as a tree of lines.

Every task stands once, below the deepest of the tasks it waits for (the last one of equals), so
that reading downwards follows the work. The other upstream tasks are noted beside it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

# Deeper branches are not indented further; the depth is written instead.
MAX_INDENT = 12


@dataclass(frozen=True)
class GraphLine:
    """One task of the drawing. ``also_after``: upstream tasks that it is not drawn below."""

    task: str
    branch: str  # "│  └─ "
    stem: str  # what continues the branch on further lines of the same task
    also_after: tuple[str, ...] = ()


def draw(depends_on: Mapping[str, Sequence[str]]) -> list[GraphLine]:
    """Return the lines for ``task -> its upstream tasks``, siblings in the mapping's order.

    Names that are not a task of the mapping are left out. The graph must have no cycle.
    """
    known = {task: [p for p in parents if p in depends_on] for task, parents in depends_on.items()}
    depth = _depths(known)
    order = {task: n for n, task in enumerate(known)}
    parent: dict[str, str | None] = {}
    children: dict[str | None, list[str]] = {None: []}
    for task, parents in known.items():
        chosen = max(parents, key=lambda p: (depth[p], order[p]), default=None)
        parent[task] = chosen
        children.setdefault(chosen, []).append(task)
    lines: list[GraphLine] = []
    # (task, its branch, what stands before its children's branches, its depth)
    stack = [(task, "", "", 0) for task in reversed(children[None])]
    while stack:
        task, branch, below, level = stack.pop()
        others = tuple(p for p in known[task] if p != parent[task])
        following = children.get(task, [])
        stem = below + ("│  " if following else "   ")
        lines.append(GraphLine(task, branch, stem, others))
        for child in reversed(following):
            last = child == following[-1]
            if level + 1 > MAX_INDENT:
                start = below[: 3 * MAX_INDENT - 3]
                stack.append((child, f"{start}{level + 1:>3}└─ ", start, level + 1))
            else:
                inner = below + ("   " if last else "│  ")
                stack.append((child, below + ("└─ " if last else "├─ "), inner, level + 1))
    return lines


def _depths(depends_on: Mapping[str, Sequence[str]]) -> dict[str, int]:
    """Return the length of the longest way to each task. Iterative, so any depth works."""
    from graphlib import TopologicalSorter

    depth: dict[str, int] = {}
    for task in TopologicalSorter(depends_on).static_order():
        depth[task] = max((depth[p] + 1 for p in depends_on[task]), default=0)
    return depth

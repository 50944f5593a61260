"""Graph questions about a workflow: order, cycles, neighbours. Names in, names out."""

from collections.abc import Mapping, Sequence
from graphlib import TopologicalSorter


def successors_of(depends_on: Mapping[str, Sequence[str]]) -> dict[str, tuple[str, ...]]:
    """Turn ``task -> its upstream tasks`` into ``task -> its downstream tasks``.

    Names that appear only as an upstream get an entry as well.
    """
    found: dict[str, list[str]] = {name: [] for name in depends_on}
    for name, upstream in depends_on.items():
        for parent in upstream:
            found.setdefault(parent, []).append(name)
    return {name: tuple(children) for name, children in found.items()}


def topological_order(depends_on: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    """Return the tasks so that each comes after its upstream ones.

    Raises graphlib.CycleError if there is a cycle; ask find_cycles first for a report.
    """
    return tuple(TopologicalSorter(depends_on).static_order())


def find_cycles(depends_on: Mapping[str, Sequence[str]]) -> list[tuple[str, ...]]:
    """Return one cycle of every knot of the graph, each as ``(a, b, c, a)`` in running order.

    Two cycles that share a task lie in one knot (strongly connected component), and only the
    shorter way round through its first task is reported: fixing it shows the next one.
    """
    return [_shortest_cycle(knot, depends_on) for knot in _knots(depends_on)]


def _knots(depends_on: Mapping[str, Sequence[str]]) -> list[list[str]]:
    """Tarjan's strongly connected components that hold a cycle; iterative, for any depth."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    on_stack: set[str] = set()
    stack: list[str] = []
    knots: list[list[str]] = []
    for root in depends_on:
        if root in index:
            continue
        work = [(root, iter(depends_on[root]))]
        index[root] = low[root] = len(index)
        stack.append(root)
        on_stack.add(root)
        while work:
            node, parents = work[-1]
            for parent in parents:
                if parent not in depends_on:
                    continue
                if parent not in index:
                    index[parent] = low[parent] = len(index)
                    stack.append(parent)
                    on_stack.add(parent)
                    work.append((parent, iter(depends_on[parent])))
                    break
                if parent in on_stack:
                    low[node] = min(low[node], index[parent])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == index[node]:
                    knot = []
                    while True:
                        member = stack.pop()
                        on_stack.discard(member)
                        knot.append(member)
                        if member == node:
                            break
                    if len(knot) > 1 or node in depends_on[node]:
                        knots.append(sorted(knot))
    return sorted(knots)


def _shortest_cycle(
    knot: Sequence[str], depends_on: Mapping[str, Sequence[str]]
) -> tuple[str, ...]:
    """Breadth-first from the knot's first task along upstream edges back to itself."""
    start, members = knot[0], set(knot)
    came_from: dict[str, str] = {}
    frontier = [start]
    while frontier:
        following: list[str] = []
        for node in frontier:
            for parent in depends_on[node]:
                if parent == start:
                    # node depends on start; walking came_from back from node gives running order
                    cycle = [start, node]
                    while cycle[-1] != start:
                        cycle.append(came_from[cycle[-1]])
                    return tuple(cycle)
                if parent in members and parent not in came_from:
                    came_from[parent] = node
                    following.append(parent)
        frontier = following
    raise AssertionError(f"{knot} is not a knot")

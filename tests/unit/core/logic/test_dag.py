"""Order, neighbours and cycles."""

import itertools
from graphlib import CycleError

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.core.definition.dag import find_cycles, successors_of, topological_order

GRAPHS = (
    st.integers(1, 12)
    .flatmap(
        lambda size: st.dictionaries(
            st.sampled_from([f"t{i}" for i in range(size)]),
            st.lists(st.sampled_from([f"t{i}" for i in range(size)]), unique=True, max_size=4),
            min_size=1,
        )
    )
    .map(lambda g: {name: [p for p in parents if p in g] for name, parents in g.items()})
)


def test_cycle_is_named_task_by_task_in_running_order() -> None:
    assert find_cycles({"a": ["c"], "b": ["a"], "c": ["b"]}) == [("a", "b", "c", "a")]


def test_task_that_waits_for_itself_is_a_cycle() -> None:
    assert find_cycles({"a": ["a"]}) == [("a", "a")]


def test_independent_cycles_are_all_reported() -> None:
    graph = {"a": ["b"], "b": ["a"], "x": ["y"], "y": ["x"], "free": ["a"]}
    assert find_cycles(graph) == [("a", "b", "a"), ("x", "y", "x")]


@given(GRAPHS)
def test_cycles_are_found_exactly_when_there_is_no_order(graph: dict[str, list[str]]) -> None:
    cycles = find_cycles(graph)
    try:
        order = topological_order(graph)
    except CycleError:
        assert cycles
    else:
        assert not cycles
        assert all(order.index(p) < order.index(t) for t, ps in graph.items() for p in ps)


@given(GRAPHS)
def test_reported_cycles_are_real(graph: dict[str, list[str]]) -> None:
    for cycle in find_cycles(graph):
        assert cycle[0] == cycle[-1]
        assert len(set(cycle)) == len(cycle) - 1
        assert all(a in graph[b] for a, b in itertools.pairwise(cycle))


@given(GRAPHS)
def test_downstream_is_upstream_turned_round(graph: dict[str, list[str]]) -> None:
    edges = {(p, t) for t, ps in graph.items() for p in ps}
    assert {(p, t) for p, ts in successors_of(graph).items() for t in ts} == edges


@pytest.mark.parametrize("size", [20_000])
def test_long_chains_do_not_exhaust_the_stack(size: int) -> None:
    chain = {f"t{i}": [f"t{i - 1}"] if i else [f"t{size - 1}"] for i in range(size)}
    (cycle,) = find_cycles(chain)
    assert len(cycle) == size + 1

"""Critical paths: equal to the model played again with a task of no duration."""

from collections.abc import Callable, Mapping

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.insight.jobs.kernels.paths import Ints, Links, PlanGraph, critical_paths
from tests.support.growth import keeps, shortest_s
from tests.support.insight.critical_path import path_of

S = 1_000_000


def paths(
    upstream: dict[str, list[str]], times: Mapping[str, tuple[float, float]]
) -> list[tuple[str, float, float, float]]:
    """Return the links of one run: task, seconds of wait, own time and gain."""
    plan = PlanGraph.of(upstream)
    ran = np.array([[name in times] for name in plan.names])
    started = np.array([[int(times.get(name, (0, 0))[0] * S)] for name in plan.names])
    finished = np.array([[int(times.get(name, (0, 0))[1] * S)] for name in plan.names])
    links = critical_paths(plan, started, finished, ran)
    assert list(links.place) == list(range(1, len(links.place) + 1))
    return [
        (plan.names[task], wait / S, own / S, gain / S)
        for task, wait, own, gain in zip(links.task, links.wait, links.own, links.gain, strict=True)
    ]


def test_slower_of_two_branches_is_the_path_and_gains_what_it_is_slower() -> None:
    dag = {"a": [], "b": ["a"], "c": ["a"], "d": ["b", "c"]}
    times = {"a": (1, 3), "b": (4, 10), "c": (3, 8), "d": (12, 13)}
    assert paths(dag, times) == [("a", 1, 2, 2), ("b", 1, 6, 2), ("d", 2, 1, 1)]


def test_task_that_did_not_run_is_passed_through() -> None:
    dag = {"a": [], "b": ["a"], "c": ["b"]}
    assert paths(dag, {"a": (0, 5), "c": (6, 9)}) == [("a", 0, 5, 5), ("c", 1, 3, 3)]


def test_upstream_task_that_ended_after_the_start_was_not_waited_for() -> None:
    dag = {"a": [], "b": [], "c": ["a", "b"]}
    times = {"a": (0, 5), "b": (0, 60), "c": (6, 90)}
    assert paths(dag, times) == [("a", 0, 5, 5), ("c", 1, 84, 30)]


def test_run_of_which_nothing_ran_has_no_path() -> None:
    assert paths({"a": [], "b": ["a"]}, {}) == []


@st.composite
def runs(
    draw: st.DrawFn,
) -> tuple[dict[str, list[str]], list[dict[str, tuple[int, int]]]]:
    """A plan, and runs of it: waits can be negative as clocks differ, tasks can be missing."""
    count = draw(st.integers(1, 9))
    names = draw(st.permutations([f"t{number}" for number in range(count)]))
    upstream = {
        name: draw(st.lists(st.sampled_from(names[:at]), unique=True)) if at else []
        for at, name in enumerate(names)
    }
    played = []
    for _ in range(draw(st.integers(1, 3))):
        times: dict[str, tuple[int, int]] = {}
        for name in names:
            if draw(st.integers(0, 5)):
                start = draw(st.integers(-3, 60)) * S // 2
                times[name] = (start, start + draw(st.integers(0, 30)) * S // 2)
        played.append(times)
    return upstream, played


@given(runs())
def test_paths_and_gains_are_those_of_a_second_computation(
    case: tuple[dict[str, list[str]], list[dict[str, tuple[int, int]]]],
) -> None:
    upstream, played = case
    plan = PlanGraph.of(upstream)
    ran = np.array([[name in times for times in played] for name in plan.names])
    started = np.array([[t.get(name, (0, 0))[0] for t in played] for name in plan.names])
    finished = np.array([[t.get(name, (0, 0))[1] for t in played] for name in plan.names])
    links = critical_paths(plan, started, finished, ran)
    for number, times in enumerate(played):
        mine = links.run == number
        found = [
            (plan.names[task], wait, own, gain)
            for task, wait, own, gain in zip(
                links.task[mine], links.wait[mine], links.own[mine], links.gain[mine], strict=True
            )
        ]
        assert found == path_of(upstream, times)


@pytest.mark.parametrize("shape", ["chain", "layers"])
def test_time_grows_with_the_tasks_alone(shape: str) -> None:
    """Ten times as many tasks take about ten times as long, not a hundred times."""
    once_s = shortest_s(_search(shape, 1_000))
    assert keeps(30 * once_s, _search(shape, 10_000))


def _search(shape: str, count: int) -> Callable[[], None]:
    """Return what finds the path of a run of ``count`` tasks."""
    plan, started, finished = _run(shape, count)

    def search() -> None:
        links = critical_paths(plan, started, finished, np.ones_like(started, dtype=bool))
        assert isinstance(links, Links)
        assert len(links.run) == (count if shape == "chain" else count // 10)

    return search


def _run(shape: str, count: int) -> tuple[PlanGraph, Ints, Ints]:
    """Return a chain, or layers of ten tasks that each wait for three of the layer before."""
    names = [f"t{number:05}" for number in range(count)]
    if shape == "chain":
        upstream = {name: names[at - 1 : at] if at else [] for at, name in enumerate(names)}
        depth = {name: at for at, name in enumerate(names)}
    else:
        upstream = {
            name: [names[at - at % 10 - 10 + (at + step) % 10] for step in range(3)]
            if at >= 10
            else []
            for at, name in enumerate(names)
        }
        depth = {name: at // 10 for at, name in enumerate(names)}
    plan = PlanGraph.of(upstream)
    started = np.array([[depth[name] * 3 * S] for name in plan.names])
    return plan, started, started + 2 * S

"""Which workflows wait for which on a day, and what decides when they are done."""

from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta

import pytest

from shoal.core.definition.kinds import LogicKind
from shoal.core.logic.dependency_graph import (
    DependencyGraph,
    GraphEdge,
    GraphProgress,
    Linked,
    Window,
    critical_chain,
    day_of,
    dependency_graph,
    last,
    looked_for,
    looking,
)
from shoal.core.logic.references import WorkflowLink, WorkflowReference, links

DAY = date(2026, 3, 11)  # a Wednesday


def waits(workflow: str, value: str = "today", project: str = "p") -> WorkflowLink:
    return WorkflowLink(WorkflowReference("wait", LogicKind.DEPENDENT, project, workflow), value)


def runs(workflow: str) -> WorkflowLink:
    return WorkflowLink(WorkflowReference("run", LogicKind.SUB_WORKFLOW, "p", workflow))


def at(day: int, hour: int = 0, month: int = 3) -> datetime:
    return datetime(2026, month, day, hour, tzinfo=UTC)


def test_links_say_which_runs_are_meant() -> None:
    when = {
        "all": [
            {"workflow": "a", "date": "today"},
            {"any": [{"workflow": "a", "date": "last1Days", "task": "t", "project": "q"}]},
        ]
    }
    definition = {
        "tasks": [
            {"name": "one", "type": "DEPENDENT", "params": {"when": when}},
            {"name": "two", "type": "MAP", "params": {"workflow": "b"}},
            {"name": "three", "type": "SHELL", "params": {"workflow": "c"}},
            {"name": "off", "type": "MAP", "params": {"workflow": "d"}, "enabled": False},
        ]
    }
    assert links("p", definition) == [
        WorkflowLink(WorkflowReference("one", LogicKind.DEPENDENT, "p", "a"), "today"),
        WorkflowLink(WorkflowReference("one", LogicKind.DEPENDENT, "q", "a"), "last1Days", "t"),
        WorkflowLink(WorkflowReference("two", LogicKind.MAP, "p", "b")),
    ]


@pytest.mark.parametrize(
    ("value", "start", "end"),
    [
        ("today", at(11), at(12)),
        ("currentHour", at(11), at(12)),
        ("last1Days", at(10), at(11)),
        ("last3Days", at(8), at(11)),
        ("lastMonday", at(2), at(3)),
        ("lastMonth", at(1, month=2), at(1)),
        ("thisMonthEnd", at(31), at(1, month=4)),
        ("of a later version", at(11), at(12)),
    ],
)
def test_date_values_lead_to_the_days_of_others_and_back(
    value: str, start: datetime, end: datetime
) -> None:
    own = day_of(DAY, "UTC")
    found = looked_for(waits("a", value), own, "UTC")
    assert found == (start, end)
    back = looking(waits("a", value), found, "UTC")
    again = looked_for(waits("a", value), back, "UTC")
    assert again[0] < found[1]
    assert found[0] < again[1]
    assert back[1] - back[0] == timedelta(days=1)


def test_days_are_those_of_the_zone_of_who_looks() -> None:
    berlin = day_of(DAY, "Europe/Berlin")
    assert berlin == (at(10, 23), at(11, 23))
    assert looked_for(waits("a", "last1Days"), berlin, "Europe/Berlin") == (at(9, 23), at(10, 23))
    spring = day_of(date(2026, 3, 29), "Europe/Berlin")
    assert spring[1] - spring[0] == timedelta(hours=23)


@pytest.mark.parametrize(("value", "day"), [("today", 11), ("last1Days", 12), ("last7Days", 12)])
def test_a_day_of_another_zone_is_the_one_that_has_most_of_it(value: str, day: int) -> None:
    berlin = day_of(DAY, "Europe/Berlin")  # from 23:00 of the 10th
    assert looking(waits("a", value), berlin, "UTC") == (at(day), at(day + 1))


def test_the_graph_goes_both_ways_and_ends_after_some_steps() -> None:
    known = {
        ("p", "a"): Linked("UTC"),
        ("p", "b"): Linked("UTC", (waits("a", "last1Days"), waits("gone"))),
        ("p", "c"): Linked("UTC", (waits("b"), runs("d"))),
        ("p", "d"): Linked("UTC"),
        ("p", "e"): Linked("UTC", (waits("c", "last1Days"),)),
        ("p", "alone"): Linked("UTC"),
        ("p", "itself"): Linked("UTC", (waits("itself", "last1Days"),)),
    }
    graph = dependency_graph(known, [("p", "b")], DAY, 1, 100)
    assert graph.distances == {("p", "b"): 0, ("p", "a"): 1, ("p", "gone"): 1, ("p", "c"): 1}
    assert graph.windows["p", "a"] == (at(10), at(11))
    assert graph.windows["p", "c"] == (at(11), at(12))
    assert {(one.source[1], one.target[1]) for one in graph.edges} == {
        ("a", "b"),
        ("gone", "b"),
        ("b", "c"),
    }
    far = dependency_graph(known, [("p", "b")], DAY, 9, 100)
    assert {name for _, name in far.windows} == {"a", "b", "c", "d", "e", "gone"}
    assert far.windows["p", "e"] == (at(12), at(13))
    assert (far.windows["p", "d"], far.is_cut) == (far.windows["p", "c"], False)
    cut = dependency_graph(known, [("p", "b")], DAY, 9, 3)
    assert (len(cut.windows), cut.is_cut) == (3, True)
    own = dependency_graph(known, [("p", "itself")], DAY, 9, 100)
    assert [edge.source for edge in own.edges] == [("p", "itself")]


def test_two_ways_of_one_length_join_their_windows() -> None:
    known = {
        ("p", "a"): Linked("UTC"),
        ("p", "b"): Linked("UTC", (waits("a", "today"), waits("a", "last1Days"))),
    }
    graph = dependency_graph(known, [("p", "b")], DAY, 1, 9)
    assert graph.windows["p", "a"] == (at(10), at(12))
    assert [len(edge.links) for edge in graph.edges] == [2]


def test_each_edge_has_the_window_of_what_is_looked_for() -> None:
    known = {
        ("p", "a"): Linked("UTC"),
        ("p", "b"): Linked("UTC", (waits("a", "last1Days"),)),
        ("p", "c"): Linked("UTC", (waits("a"),)),
    }
    graph = dependency_graph(known, known, DAY, 2, 9)
    assert graph.windows["p", "a"] == (at(11), at(12))
    windows = {edge.target[1]: edge.window for edge in graph.edges}
    assert windows == {"b": (at(10), at(11)), "c": (at(11), at(12))}


TODAY = (at(11), at(12))


def edge(source: str, target: str, window: Window = TODAY) -> GraphEdge:
    return GraphEdge(("p", source), ("p", target), (), window)


def chain(
    edges: Sequence[GraphEdge], end: str, **progress: tuple[int, int | None]
) -> tuple[str, ...]:
    """Hours of the 11th at which workflows began and ended."""
    hours = {
        ("p", name): GraphProgress(at(11, began), None if ended is None else at(11, ended))
        for name, (began, ended) in progress.items()
    }
    names = {one for edge in edges for one in (edge.source, edge.target)}
    graph = DependencyGraph(dict.fromkeys(names, TODAY), dict.fromkeys(names, 0), (*edges,), False)
    of_edges = {edge: hours[edge.source] for edge in edges if edge.source in hours}
    return tuple(name for _, name in critical_chain(graph, hours, of_edges, ("p", end)))


EDGES = [edge("a", "c"), edge("b", "c"), edge("c", "d"), edge("missing", "d")]


def test_the_last_to_end_decides() -> None:
    assert chain(EDGES, "c", a=(0, 1), b=(0, 2), c=(0, 3)) == ("b", "c")
    assert chain(EDGES, "d", a=(0, 1), b=(0, 2), c=(0, 3), d=(2, 4)) == ("b", "c", "d")


def test_what_is_not_done_waits_for_what_there_is_not() -> None:
    assert chain(EDGES, "d", c=(0, 3)) == ("missing", "d")
    assert chain(EDGES, "d", c=(0, 3), d=(0, None)) == ("missing", "d")
    assert chain(EDGES, "d", c=(0, 3), d=(0, 4)) == ("c", "d")


def test_what_ended_before_or_after_was_not_waited_for() -> None:
    assert chain(EDGES, "c", a=(0, 1), b=(0, 2), c=(3, 4)) == ("c",)
    assert chain(EDGES, "c", a=(0, 1), b=(5, 6), c=(0, 4)) == ("a", "c")
    assert chain(EDGES, "c", a=(0, 1), b=(5, None), c=(0, 4)) == ("a", "c")
    assert chain(EDGES, "c", a=(0, 1), b=(5, None), c=(0, None)) == ("b", "c")


def test_the_chain_ends_with_runs_of_another_day() -> None:
    edges = [edge("a", "b"), edge("b", "c", (at(10), at(11)))]
    assert chain(edges, "c", a=(0, 1), b=(0, 2), c=(0, 3)) == ("b", "c")


def test_a_circle_has_an_end() -> None:
    assert chain([edge("a", "b"), edge("b", "a")], "a") == ("b", "a")


def test_what_has_not_ended_is_the_last() -> None:
    ended = {
        ("p", "a"): GraphProgress(at(11), at(11, 4)),
        ("p", "b"): GraphProgress(at(11), at(11, 3)),
    }
    running = {**ended, ("p", "b"): GraphProgress(at(11), None)}
    assert (last(ended), last(running), last({})) == (("p", "a"), ("p", "b"), None)

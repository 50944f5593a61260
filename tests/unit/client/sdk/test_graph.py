"""A DAG as lines of a tree."""

from hypothesis import given
from hypothesis import strategies as st

from shoal.client.cli.runs.graph import MAX_INDENT, draw


def picture(graph: dict[str, list[str]]) -> list[str]:
    """The lines as a reader sees them."""
    notes = ((line, f" ({','.join(line.also_after)})") for line in draw(graph))
    return [f"{line.branch}{line.task}{note if line.also_after else ''}" for line, note in notes]


def test_a_task_with_several_parents_stands_once_below_the_last_of_them() -> None:
    graph = {
        "fetch": [],
        "clean": ["fetch"],
        "quality": ["fetch"],
        "report": ["clean", "quality"],
        "picture": ["report"],
        "alone": [],
    }
    assert picture(graph) == [
        "fetch",
        "├─ clean",
        "└─ quality",
        "   └─ report (clean)",
        "      └─ picture",
        "alone",
    ]


def test_a_task_stands_below_the_deepest_of_its_parents() -> None:
    graph = {"join": ["a", "c"], "a": [], "b": ["a"], "c": ["b"]}
    assert picture(graph) == ["a", "└─ b", "   └─ c", "      └─ join (a)"]


def test_branches_go_on_beside_deeper_ones() -> None:
    graph = {"a": [], "b": ["a"], "c": ["b"], "d": ["a"]}
    assert picture(graph) == ["a", "├─ b", "│  └─ c", "└─ d"]


def test_unknown_parents_are_left_out() -> None:
    assert picture({"a": ["gone"]}) == ["a"]


def test_deep_chains_do_not_run_out_of_the_screen_or_the_stack() -> None:
    graph = {f"t{n}": [f"t{n - 1}"] if n else [] for n in range(3000)}
    lines = draw(graph)
    assert [line.task for line in lines] == list(graph)
    assert max(len(line.branch) for line in lines) <= 3 * MAX_INDENT + 6
    assert "2999" in lines[-1].branch


@given(st.lists(st.sets(st.integers(0, 14), max_size=4), max_size=15))
def test_every_task_stands_once_below_what_it_waits_for(parents: list[set[int]]) -> None:
    graph = {f"t{n}": [f"t{p}" for p in sorted(ps) if p < n] for n, ps in enumerate(parents)}
    lines = draw(graph)
    assert sorted(line.task for line in lines) == sorted(graph)
    for line in lines:
        direct = set(graph[line.task]) - set(line.also_after)
        assert len(direct) == (1 if graph[line.task] else 0)
        assert bool(line.branch) == bool(graph[line.task])

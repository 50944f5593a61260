"""Lanes take turns: none waits behind the backlog of another one, and none saves up turns."""

from itertools import islice

from hypothesis import given
from hypothesis import strategies as st

from shoal.coordination import QueueEntry
from shoal.coordination.cluster.lanes import LaneTurns, lane_of
from shoal.coordination.queue.entry import lane_of_bucket, parse
from shoal.coordination.queue.window import MOST_ENTRIES, EntryWindow, Line


def taken_from(turns: LaneTurns, lines: dict[int, list[str]], count: int) -> str:
    """Claim entries one by one; return the lanes they came from."""
    found = ""
    for _ in range(count):
        first = next(turns.merged({lane: line for lane, line in lines.items() if line}))
        lane = next(lane for lane, line in lines.items() if line and line[0] == first)
        lines[lane].pop(0)
        turns.take(lane)
        found += first[0]
    return found


def test_newcomer_is_next_and_has_no_credit() -> None:
    turns = LaneTurns()
    lines = {1: [f"a{n}" for n in range(100)]}
    assert taken_from(turns, lines, 10) == "a" * 10
    lines[2] = [f"b{n}" for n in range(50)]
    assert taken_from(turns, lines, 6) in ("bababa", "babaab", "baabab")
    lines[3] = ["c0"]
    assert "c" in taken_from(turns, lines, 2)
    assert abs(taken_from(turns, lines, 20).count("a") - 10) <= 1


def entries_of(lane: int, count: int, *, priority: int = 2) -> list[QueueEntry]:
    first = lane * 10_000 + 1
    return [QueueEntry("g", priority, n, 2, n, 0, lane) for n in range(first, first + count)]


def filled(window: EntryWindow, *lines: list[QueueEntry]) -> None:
    """Let a reading find whole lanes."""
    found = {
        (line[0].workflow_priority, line[0].lane): Line(line, is_complete=True) for line in lines
    }
    window.fill(found, is_complete=True, is_searched=True, unread=(), blocked=(), left_out=())


def claimed(window: EntryWindow, count: int) -> list[int]:
    """Claim what comes next; return the lanes."""
    some = window.entries[:count]
    window.taken(some)
    window.drop({entry.task_instance_id for entry in some})
    return [entry.lane for entry in some]


def test_lane_that_was_away_has_no_credit_for_what_the_only_other_one_took() -> None:
    window = EntryWindow()
    filled(window, entries_of(2, 1))
    claimed(window, 1)
    for _ in range(50):
        filled(window, entries_of(1, 10))
        claimed(window, 10)
    filled(window, entries_of(1, 300), entries_of(2, 300))
    assert sorted(claimed(window, 20)) == [1] * 10 + [2] * 10


def test_what_is_too_much_for_a_window_is_the_least_urgent() -> None:
    window = EntryWindow()
    filled(window)
    urgent = entries_of(1, MOST_ENTRIES - 10, priority=1)
    for entry in [*entries_of(3, 300, priority=4), *entries_of(2, 100), *urgent]:
        window.add(entry)
    window.trim()
    assert window.entries == [*urgent, *entries_of(2, 10)]
    assert window.reaches(entries_of(4, 1, priority=1)[0])
    assert not window.reaches(entries_of(4, 1, priority=3)[0])
    window.add(entries_of(4, 1, priority=1)[0])
    for entry in entries_of(5, 20, priority=1):
        window.add(entry)
    window.trim()
    assert {entry.workflow_priority for entry in window.entries} == {1}
    assert not window.reaches(entries_of(2, 1)[0])


def test_one_lane_keeps_its_order() -> None:
    assert list(LaneTurns().merged({7: ["x", "y", "z"]})) == ["x", "y", "z"]


@given(
    st.dictionaries(st.integers(0, 5), st.integers(0, 30), min_size=1, max_size=6),
    st.lists(st.integers(0, 5), max_size=30),
)
def test_merged_has_every_entry_once_and_keeps_the_order_of_each_lane(
    sizes: dict[int, int], before: list[int]
) -> None:
    turns = LaneTurns()
    for lane in before:
        turns.take(lane)
    lines = {lane: [(lane, n) for n in range(size)] for lane, size in sizes.items()}
    found = list(turns.merged(lines))
    assert sorted(found) == sorted(entry for line in lines.values() for entry in line)
    for lane, line in lines.items():
        assert [entry for entry in found if entry[0] == lane] == line


@given(st.lists(st.integers(1, 200), min_size=2, max_size=5))
def test_every_lane_is_among_the_first_of_a_fresh_claimer(sizes: list[int]) -> None:
    lines = {lane: [lane] * size for lane, size in enumerate(sizes)}
    first = set(islice(LaneTurns().merged(lines), len(sizes)))
    assert first == set(lines)


def test_path_of_an_entry_names_its_lane() -> None:
    entry = QueueEntry("g", 2, 17, 3, 41, 5, lane_of("etl"))
    outer, inner, name = entry.path.rsplit("/", 3)[1:]
    assert parse("g", outer, inner, name) == entry
    assert lane_of_bucket(outer) == (2, lane_of("etl"))
    # Earlier versions knew of no lanes; and nothing has two paths.
    old = QueueEntry("g", 2, 17, 3, 41, 5)
    assert lane_of_bucket(old.outer.rsplit("/", 1)[1]) == (2, 0)
    assert parse("g", *old.path.rsplit("/", 3)[1:]) == old
    try:
        parse("g", f"2-{0:010d}-{0:09d}", inner, name)
    except ValueError:
        pass
    else:
        raise AssertionError("an entry of lane 0 has two paths")

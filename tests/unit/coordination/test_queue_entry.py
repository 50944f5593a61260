"""Entries sort by their paths as they sort by their numbers."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.coordination import znodes
from shoal.coordination.cluster import layout
from shoal.coordination.queue.entry import QueueEntry, parse

priorities = st.integers(0, 4)
entries = st.builds(
    QueueEntry,
    st.just("g"),
    priorities,
    st.one_of(st.integers(0, 3000), st.integers(0, 10**12 - 1)),
    priorities,
    st.one_of(st.integers(0, 3000), st.integers(0, 10**14 - 1)),
    st.integers(0, 999),
)


@given(entries, entries)
def test_paths_sort_like_entries(one: QueueEntry, other: QueueEntry) -> None:
    assert (one.path.split("/") < other.path.split("/")) == (one < other)


@given(entries)
def test_path_tells_the_whole_entry(entry: QueueEntry) -> None:
    *_, outer, inner, name = entry.path.split("/")
    assert parse("g", outer, inner, name) == entry
    assert entry.path.startswith(entry.inner + "/")
    assert entry.inner.startswith(entry.outer + "/")


@pytest.mark.parametrize("foreign", ["x", "1-2", "00000000000001", "-p", "1-pp"])
def test_foreign_names_are_refused(foreign: str) -> None:
    with pytest.raises(ValueError):
        parse("g", "2-000000000", "000000000001-2-00000000000", foreign)


@pytest.mark.parametrize(
    "path",
    [
        "2-000000000/000000000001-2-00000000000/00000000000001-p00٣",  # a digit, but not ours
        "2-000000000/000000000001-2-00000000000/0000000000_001-p000",
        "2-000000000/000000000001-2-00000000000/1-p0",
        "2-000000000/000000000001-2-00000000007/00000000000001-p000",  # another bucket's
        "2-000000009/000000000001-2-00000000000/00000000000001-p000",
        "9-000000000/000000000001-2-00000000000/00000000000001-p000",
        "2-000000000/000000000001-2-00000000000/00000000000001-p000\n",
    ],
)
def test_what_is_no_entry_is_refused(path: str) -> None:
    """It could be read as one, but not be claimed: its own path would be another."""
    with pytest.raises(ValueError, match=r"not an entry|not its own"):
        parse("g", *path.split("/"))


def test_what_does_not_fit_is_refused() -> None:
    for numbers in [(5, 1, 2, 1, 1), (2, 10**12, 2, 1, 1), (2, 1, -1, 1, 1), (2, 1, 2, 10**14, 1),
                    (2, 1, 2, 1, 1000)]:  # fmt: skip
        with pytest.raises(ValueError, match=r"priorities|fit"):
            QueueEntry("g", *numbers)


def test_a_million_entries_make_short_lists() -> None:
    # 1,000 instances of 1,000 tasks each, as the database numbers them.
    children: dict[str, set[str]] = {}
    for instance in range(0, 1000, 50):  # every fiftieth: the others look alike
        for task in range(1000):
            path = QueueEntry("g", 2, instance, 2, instance * 1000 + task, 1).path
            while path != layout.queue("g"):
                parent, _, name = path.rpartition("/")
                children.setdefault(parent, set()).add(name)
                path = parent
    assert max(map(len, children.values())) <= 1000
    # And a million instances of one task each.
    outers = {QueueEntry("g", 2, i, 2, i, 1).outer for i in range(0, 10**6, 500)}
    assert len(outers) <= 1000


@given(st.text(min_size=1, alphabet=st.characters(exclude_categories=["Cs"])))
def test_any_name_can_be_a_path_element(name: str) -> None:
    element = znodes.encode_name(name)
    assert "/" not in element
    assert element not in (".", "..")
    assert "\0" not in element
    assert znodes.decode_name(element) == name


def test_empty_name_is_refused() -> None:
    with pytest.raises(ValueError, match="empty"):
        znodes.encode_name("")


def test_name_that_utf8_cannot_encode_is_refused() -> None:
    with pytest.raises(ValueError, match="character 2 is a lone surrogate"):
        znodes.encode_name("a\ud800")

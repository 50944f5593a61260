"""A cluster counts as whole only when every partition is held and stored by a live master."""

from dataclasses import replace

from tests.chaos.observer import Member, View

MASTERS, WORKERS = [11, 12], [21]
WHOLE = View(
    members={
        11: Member("master-11", 11, 0xA),
        12: Member("master-12", 12, 0xB),
        21: Member("worker-21", 21, 0xC),
    },
    owners={0: ("master-11", 0xA, 5), 1: ("master-12", 0xB, 6)},
    rows={0: ("master-11", 5), 1: ("master-12", 6)},
)


def test_everybody_there_and_everything_owned_is_whole() -> None:
    assert WHOLE.whole(MASTERS, WORKERS) == ""


def test_a_missing_member_is_missing() -> None:
    assert "members" in WHOLE.whole(MASTERS, [21, 22])
    assert "members" in WHOLE.whole([11], WORKERS)  # one too many: its node outlived it


def test_a_partition_without_owner_is_missing() -> None:
    orphaned = replace(WHOLE, owners={0: WHOLE.owners[0]})
    assert orphaned.whole(MASTERS, WORKERS) == "1 partitions have no live owner"


def test_a_node_of_an_earlier_session_owns_nothing() -> None:
    stale = replace(WHOLE, owners={**WHOLE.owners, 1: ("master-12", 0xF, 6)})
    assert stale.whole(MASTERS, WORKERS) == "1 partitions have no live owner"


def test_a_node_of_somebody_unknown_owns_nothing() -> None:
    stale = replace(WHOLE, owners={**WHOLE.owners, 1: ("master-13", 0xB, 6)})
    assert stale.whole(MASTERS, WORKERS) == "1 partitions have no live owner"


def test_a_partition_that_is_not_stored_yet_is_missing() -> None:
    before = replace(WHOLE, rows={**WHOLE.rows, 1: ("master-13", 4)})
    assert before.whole(MASTERS, WORKERS) == "1 partitions are not taken in the database"


def test_a_stored_epoch_of_an_earlier_node_is_missing() -> None:
    before = replace(WHOLE, rows={**WHOLE.rows, 1: ("master-12", 4)})
    assert before.whole(MASTERS, WORKERS) == "1 partitions are not taken in the database"

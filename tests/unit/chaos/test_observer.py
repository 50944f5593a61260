"""A cluster is whole only if a live master holds and has stored every partition.

An observer that calls it whole too early makes takeovers look faster than they are.
"""

from dataclasses import replace

import pytest

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


STALE = "1 partitions have no live owner"
BEHIND = "1 partitions are not taken in the database"


def test_cluster_with_every_partition_held_and_stored_is_whole() -> None:
    assert WHOLE.whole(MASTERS, WORKERS) == ""


def test_missing_member_and_node_that_outlived_its_master_are_seen() -> None:
    assert "members" in WHOLE.whole(MASTERS, [21, 22])
    assert "members" in WHOLE.whole([11], WORKERS)


@pytest.mark.parametrize(
    ("view", "missing"),
    [
        (replace(WHOLE, owners={0: WHOLE.owners[0]}), STALE),
        (replace(WHOLE, owners={**WHOLE.owners, 1: ("master-12", 0xF, 6)}), STALE),
        (replace(WHOLE, owners={**WHOLE.owners, 1: ("master-13", 0xB, 6)}), STALE),
        (replace(WHOLE, rows={**WHOLE.rows, 1: ("master-13", 4)}), BEHIND),
        (replace(WHOLE, rows={**WHOLE.rows, 1: ("master-12", 4)}), BEHIND),
    ],
    ids=["no owner", "earlier session", "unknown master", "not stored yet", "earlier epoch"],
)
def test_partition_without_a_live_owner_is_seen(view: View, missing: str) -> None:
    assert view.whole(MASTERS, WORKERS) == missing

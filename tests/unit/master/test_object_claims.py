"""Whose the objects are whose names hold no cluster: in a folder, and at an S3 that moto plays."""

import io
import re
from datetime import UTC, datetime, timedelta

import pytest

from shoal.master.services.upkeep.object_claims import FOLDER, SETTLED, ObjectClaims
from shoal.runtime.storage import Purpose, Storage, StorageError, cluster_folder
from tests.support.storage import s3 as s3
from tests.support.storage import storage as storage

CLAIM = Purpose("claims", "resources_url", re.compile("[0-9a-f]{32}"))
ONE, TWO, THREE = (f"demo/{number:032x}" for number in range(3))
NOW = datetime(2026, 11, 27, 12, tzinfo=UTC)
LATER = NOW + SETTLED
BETWEEN = NOW + SETTLED / 2


def of(storage: Storage, cluster: str) -> ObjectClaims:
    return ObjectClaims(storage.url, cluster)


@pytest.fixture(autouse=True)
def nobody_has_claimed(request: pytest.FixtureRequest) -> None:
    if "storage" in request.fixturenames:
        found: Storage = request.getfixturevalue("storage")
        found.remove_folder(FOLDER)


def test_claim_counts_after_it_has_stood_for_long(storage: Storage) -> None:
    one = of(storage, "one")
    assert one.held([ONE, TWO], NOW) == set()
    assert one.held([ONE, TWO], LATER - timedelta(seconds=1)) == set()
    assert one.held([ONE], LATER) == {ONE}, "only what is asked for"
    assert of(storage, "one").held([ONE, TWO], LATER) == {ONE, TWO}, "it survives a restart"


def test_what_another_cluster_has_held_for_long_is_never_claimed(storage: Storage) -> None:
    original, copy = of(storage, "original"), of(storage, "copy")
    original.held([ONE, TWO], NOW)
    for at in (LATER, LATER + SETTLED, LATER + 9 * SETTLED):
        assert copy.held([ONE, TWO], at) == set()
    assert storage.names_in(FOLDER) == [cluster_folder("original")]
    assert original.held([ONE, TWO], LATER) == {ONE, TWO}


@pytest.mark.parametrize("first", ["original", "copy"])
def test_what_two_clusters_claim_nobody_removes(storage: Storage, first: str) -> None:
    second = {"original": "copy", "copy": "original"}[first]
    of(storage, first).held([ONE, TWO], NOW)
    assert of(storage, second).held([ONE, THREE], BETWEEN) == set()
    assert of(storage, first).held([ONE, TWO], LATER) == {TWO}, "the other claim is young"
    much_later = LATER + SETTLED
    assert of(storage, first).held([ONE, TWO], much_later) == {TWO}
    assert of(storage, second).held([ONE, THREE], much_later) == {THREE}
    # An administrator decides.
    Storage(f"{storage.url}/{FOLDER}", CLAIM).remove(cluster_folder(second))
    assert of(storage, first).held([ONE, TWO], much_later) == {ONE, TWO}


def test_clusters_that_are_no_copies_share_a_storage(storage: Storage) -> None:
    of(storage, "one").held([ONE], NOW)
    of(storage, "two").held([TWO], NOW)
    assert of(storage, "one").held([ONE], LATER) == {ONE}
    assert of(storage, "two").held([TWO], LATER) == {TWO}


def test_claim_that_cannot_be_read_keeps_others_off_and_holds_nothing(storage: Storage) -> None:
    one = of(storage, "one")
    one.held([ONE], NOW)
    folder = Storage(f"{storage.url}/{FOLDER}", CLAIM)
    folder.put(cluster_folder("one"), io.BytesIO(b"\xff\xfe\x00"))
    assert one.held([ONE], LATER) == set(), "it has just been made anew"
    assert one.held([ONE], LATER + SETTLED) == {ONE}


def test_storage_that_is_away_holds_nothing() -> None:
    with pytest.raises(StorageError, match="resources_url"):
        ObjectClaims("nowhere://x", "one").held([ONE], NOW)

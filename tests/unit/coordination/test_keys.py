"""Every process, on every machine and in every version, must put a key into the same partition."""

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.coordination.keys import partition_of


@pytest.mark.parametrize(
    ("key", "partition"), [("", 85), ("nightly", 28), ("Fahrplan-Änderung", 95)]
)
def test_known_keys_stay_where_they_are(key: str, partition: int) -> None:
    assert partition_of(key) == partition


@given(st.text(), st.integers(1, 1000))
def test_partition_is_the_digest_modulo_the_count(key: str, partitions: int) -> None:
    number = int(hashlib.sha256(key.encode()).hexdigest(), 16)
    assert partition_of(key, partitions) == number % partitions

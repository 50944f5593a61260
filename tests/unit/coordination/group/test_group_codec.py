"""A group survives its way through a znode; what is not a group is told apart."""

import pytest

from shoal.coordination.assignors import Partition
from shoal.coordination.errors import Mismatch
from shoal.coordination.group import DeleteGroup, GroupMetadata, Join, Request, Sync, Tick, decide
from shoal.coordination.group.codec import decode, encode


def test_every_state_survives() -> None:
    group = GroupMetadata("g", initial_rebalance_delay_s=1.0)
    joins = [
        Join(
            None,
            name,
            ("range", "sticky"),
            {"jobs": 2},
            9.5,
            "i" + name,
            (Partition("jobs", 1),),
            2,
        )
        for name in ("z", "a")
    ]
    pending = Join(None, "p", ("range",), {}, 9.5, client_id="host")
    sync = Sync("z", 1, assignment={"z": [Partition("jobs", 0)], "a": [Partition("jobs", 1)]})
    states = []
    requests: list[Request] = [*joins, Tick(), Tick(), pending, sync, DeleteGroup()]
    for now_s, request in enumerate(requests):
        group = decide(group, request, float(now_s)).group
        states.append(group.state)
        again = decode(encode(group), "g", 1.0)
        assert again == group
        assert list(again.members) == list(group.members)
    assert len(set(states)) == 4


def test_a_new_znode_is_an_empty_group() -> None:
    assert decode(b"", "g", 3.0) == GroupMetadata("g", 3.0)


@pytest.mark.parametrize("data", [b"hello", b"[]", b"{}", b'{"format":2}', b'{"format":1}'])
def test_what_this_program_cannot_read_is_refused(data: bytes) -> None:
    with pytest.raises(Mismatch, match="group 'g'"):
        decode(data, "g", 3.0)

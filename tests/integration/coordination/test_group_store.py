"""The group's znode is written by whoever has read its last state, and by nobody else."""

import pytest

from shoal.coordination import ZkSession
from shoal.coordination.errors import BadVersion
from shoal.coordination.group.model import GroupMetadata
from shoal.coordination.group.store import GroupStore


async def test_of_two_who_have_read_the_same_only_one_can_write(session: ZkSession) -> None:
    one, two = (GroupStore(session, "g", 3.0) for _ in range(2))
    await one.register("one", {})
    await two.register("two", {})
    seen_by_one, seen_by_two = await one.read(), await two.read()
    assert seen_by_one == seen_by_two

    await one.write(GroupMetadata("g", 3.0, generation=7), seen_by_one.version)
    with pytest.raises(BadVersion):
        await two.write(GroupMetadata("g", 3.0, generation=8), seen_by_two.version)

    now = await two.read()
    assert now.metadata.generation == 7
    await two.write(GroupMetadata("g", 3.0, generation=8), now.version)
    assert (await one.read()).metadata.generation == 8

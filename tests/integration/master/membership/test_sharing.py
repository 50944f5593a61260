"""Masters share the partitions as a group; a change of masters moves only what must move."""

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping

from shoal.coordination import GroupMetadata, Members, Owners, read_group, znodes
from shoal.coordination.cluster import layout
from shoal.coordination.cluster.owners import OwnerInfo
from shoal.coordination.group import DeleteGroup, decide
from shoal.coordination.group.codec import encode
from tests.integration.master.conftest import Bench
from tests.support.waiting import DEADLINE_S

GROUP = layout.MASTERS_GROUP


async def owned(
    bench: Bench, good: Callable[[Mapping[int, OwnerInfo]], bool]
) -> Mapping[int, OwnerInfo]:
    """Return who owns what, once that is as it should be."""
    owners = Owners(bench.session)
    async with asyncio.timeout(DEADLINE_S):
        while not good(found := await owners.all_owners(8)):
            await asyncio.sleep(0.01)
    return found


def sizes(owners: Mapping[int, OwnerInfo]) -> list[int]:
    return sorted(Counter(owner.owner_id for owner in owners.values()).values())


async def test_a_newcomer_gets_its_share_and_nothing_else_changes_hands(bench: Bench) -> None:
    async with bench.master(), bench.master():
        before = await owned(bench, lambda found: sizes(found) == [4, 4])
        async with bench.master():
            after = await owned(bench, lambda found: sizes(found) == [2, 3, 3])
            moved = [number for number in range(8) if after[number] != before[number]]
            assert len(moved) == 2
            assert all(after[number].epoch > before[number].epoch for number in moved)
        last = await owned(bench, lambda found: sizes(found) == [4, 4])
        assert all(last[number] == after[number] for number in range(8) if number not in moved)
        stored = await bench_epochs(bench)
        assert stored == {number: owner.epoch for number, owner in last.items()}


async def bench_epochs(bench: Bench) -> dict[int, int]:
    """The epochs in the database, once they are as high as those of the owners."""
    owners = await owned(bench, lambda found: len(found) == 8)
    async with asyncio.timeout(DEADLINE_S):
        while True:
            async with bench.database.unit_of_work(read_only=True) as uow:
                rows = {row.index: row.epoch for row in await uow.partitions.all()}
            if all(rows[number] >= owner.epoch for number, owner in owners.items()):
                return rows
            await asyncio.sleep(0.01)


async def test_the_group_names_its_leader_as_the_members_do(bench: Bench) -> None:
    assert (await read_group(bench.session, GROUP)).leader is None
    async with bench.master(), bench.master(), Members(bench.session, layout.MASTERS) as members:
        await owned(bench, lambda found: sizes(found) == [4, 4])
        group = await read_group(bench.session, GROUP)
        assert {member.client_id for member in group.members.values()} == set(members.current())
        assert group.leader is not None
        assert group.leader.client_id in members.current()
        assert group.assignor == "cooperative-sticky"
    left = await read_group(bench.session, GROUP)
    assert left.members == {}
    assert left.generation >= group.generation


async def test_masters_whose_group_was_marked_as_deleted_begin_it_anew(bench: Bench) -> None:
    """Only a stranger can have written that: no content of a znode ends a master."""
    async with bench.master() as master:
        await owned(bench, lambda found: sizes(found) == [8])
        await delete_group(bench)
        await owned(bench, lambda found: sizes(found) == [8])
        async with bench.master():
            await owned(bench, lambda found: sizes(found) == [4, 4])
        assert not master.done()


async def delete_group(bench: Bench) -> None:
    """Mark the masters' group as deleted, whatever its masters write meanwhile."""
    group: GroupMetadata = decide(await read_group(bench.session, GROUP), DeleteGroup(), 0.0).group
    await bench.session.set(znodes.group(GROUP), encode(group))

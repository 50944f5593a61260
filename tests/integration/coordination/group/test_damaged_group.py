"""A group whose state somebody has damaged begins anew, in a higher generation."""

import json
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from shoal.coordination import Group, ZkSession, quarantine, znodes
from tests.integration.coordination.conftest import connect
from tests.integration.coordination.group.group_bench import QUICK
from tests.support.waiting import eventually

FAR_S = 9e12

Damage = Callable[[dict[str, Any]], dict[str, Any]]


def changed(**fields: Any) -> Damage:
    return lambda group: group | fields


def ghosts(group: dict[str, Any]) -> dict[str, Any]:
    some = [group["members"][0] | {"id": f"ghost-{number}"} for number in range(300)]
    return group | {"members": [*group["members"], *some]}


def without_members(state: str) -> Damage:
    return changed(state=state, members=[], leader=None)


def greedy(group: dict[str, Any]) -> dict[str, Any]:
    first, *others = group["members"]
    return group | {"members": [first | {"topics": {"t": 10**9}}, *others]}


DAMAGE: dict[str, Damage] = {
    "deleted": without_members("Dead"),
    "empty with members": changed(state="Empty"),
    "waits for ever": changed(state="PreparingRebalance", deadline_s=None),
    "waits for a far day": changed(state="PreparingRebalance", deadline_s=FAR_S),
    "assigns for ever": changed(state="CompletingRebalance", deadline_s=None),
    "led by nobody": changed(leader=None),
    "led by a stranger": changed(leader="stranger"),
    "unknown assignor": changed(assignor="junk"),
    "stable without members": without_members("Stable"),
    "given twice": changed(assignment={"a": [["t", 0]], "b": [["t", 0]]}),
    "haunted": ghosts,
    "wants a billion partitions": greedy,
}


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE)
async def test_impossible_state_is_quarantined(
    session: ZkSession, zk_chroot: str, damage: Damage
) -> None:
    path = znodes.group("g")
    async with (
        connect(zk_chroot) as other,
        Group(session, "g", topics={"t": 4}, settings=replace(QUICK, client_id="a")) as a,
        Group(other, "g", topics={"t": 4}, settings=replace(QUICK, client_id="b")) as b,
    ):
        await eventually(lambda: len(a.owned) == len(b.owned) == 2)
        before, ids = a.metadata.generation, (a.member_id, b.member_id)
        group = json.loads((await session.get(path)).data)
        await session.set(path, json.dumps(damage(group)).encode())
        await eventually(partial(_both_anew, a, b, ids))
        await eventually(lambda: len(a.owned) == len(b.owned) == 2)
        assert a.metadata.generation > before
    records = await quarantine.records(session)
    assert [record.path for record in records] == [path]


def _both_anew(a: Group, b: Group, ids: tuple[str, str]) -> bool:
    return a.member_id != ids[0] and b.member_id != ids[1]

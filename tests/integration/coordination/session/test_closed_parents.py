"""In a shared ensemble the nodes above our path may belong to others."""

import asyncio

import pytest
from kazoo.security import make_acl, make_digest_acl

from shoal.coordination.errors import AccessDenied
from tests.integration.coordination.conftest import connect
from tests.support.zookeeper.secure import stock_client

CREDENTIAL = "digest:team:secret"


def close(address: str, team: bool) -> None:
    """Let all read the chroot, and nothing else; /team in it belongs to the team or to others."""
    hosts, _, chroot = address.partition("/")
    client = stock_client(hosts)
    client.start()
    try:
        owner = make_digest_acl("team" if team else "others", "secret", all=True)
        client.create(f"/{chroot}/team", acl=[owner, make_acl("world", "anyone", read=True)])
        client.set_acls(f"/{chroot}", [make_acl("world", "anyone", read=True)])
    finally:
        client.stop()
        client.close()


async def test_a_path_below_a_closed_parent_is_made(zk_chroot: str) -> None:
    await asyncio.to_thread(close, zk_chroot, True)
    async with connect(f"{zk_chroot}/team/app/x", credential=CREDENTIAL) as session:
        await session.create("/a/b/c", makepath=True)
        assert (await session.children("/")).names == ["a"]


async def test_the_error_names_the_node_that_may_not_be_created(zk_chroot: str) -> None:
    await asyncio.to_thread(close, zk_chroot, False)
    with pytest.raises(AccessDenied, match=r"/team/app: its access list"):
        await connect(f"{zk_chroot}/team/app/x", credential=CREDENTIAL).__aenter__()

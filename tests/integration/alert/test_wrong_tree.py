"""An alert server in another tree than the masters' would take jobs that others have."""

import asyncio

import pytest

from shoal.coordination.errors import BindingRefused
from shoal.sql.tree_binding import TreeBinding
from tests.integration.alert.conftest import Site
from tests.support.waiting import DEADLINE_S


async def test_alert_server_does_not_start_in_another_tree(site: Site) -> None:
    await site.channel()
    await site.receiver()
    await site.rule()
    store = TreeBinding(site.database)
    assert await store.bind("theirs", "zk:2181/shoal", await store.read(), even_if_alive=False)
    async with site.server() as server, asyncio.timeout(DEADLINE_S):
        with pytest.raises(BindingRefused, match=r"bound to tree theirs at zk:2181/shoal"):
            await server

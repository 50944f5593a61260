"""A call whose channel is closed has no answer; only who is cancelled is cancelled."""

import asyncio
import socket
from pathlib import Path

import pytest

from shoal.proto import shoal_pb2 as pb
from shoal.proto.channels import Channels, call
from shoal.proto.errors import PeerUnavailable
from shoal.proto.tls import TlsFiles, create_identity


@pytest.mark.parametrize("cancelled", [False, True])
async def test_closing_the_channel_is_no_cancellation(tmp_path: Path, *, cancelled: bool) -> None:
    create_identity(tmp_path)
    silent = socket.create_server(("127.0.0.1", 0))  # accepts, in its queue, and says nothing
    async with Channels(TlsFiles.inside(tmp_path)) as channels:
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        fetching = channels.master(address).Fetch(pb.FetchRequest(), timeout=60.0)
        calling = asyncio.create_task(call(address, fetching))
        await asyncio.sleep(0.05)
        if cancelled:
            calling.cancel()
        else:
            await channels.forget(address)
        with pytest.raises(asyncio.CancelledError if cancelled else PeerUnavailable):
            await calling
    silent.close()

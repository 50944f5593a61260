"""Logs over gRPC: ranges, following, downloads, of attempts that run, ran, or never existed."""

import asyncio
from pathlib import Path

import pytest

from shoal.proto import shoal_pb2 as pb
from shoal.proto.channels import Channels
from shoal.proto.errors import PeerRefused
from shoal.runtime.settings import ClusterSettings
from shoal.worker.logs.files import log_workflow
from shoal.worker.logs.service import LONGEST_VIEW
from tests.integration.worker.agent.kit import InProcessWorker, log_file, the_worker, until
from tests.integration.worker.logs.log_reader import MEBIBYTE, Reader, ref
from tests.support.fake_master import FakeMaster
from tests.support.waiting import DEADLINE_S, eventually

pytest_plugins = ["tests.integration.worker.agent.fixtures"]

BINARY = bytes(range(256)) * 4 + b"\xff\xfe\x00\xc3"


@pytest.fixture
async def reader(master: FakeMaster, worker: InProcessWorker, channels: Channels) -> Reader:
    return Reader(channels, str((await the_worker(master.session)).data["address"]))


async def test_binary_log_comes_back_byte_by_byte(
    master: FakeMaster, reader: Reader, tmp_path: Path
) -> None:
    source = tmp_path / "binary"
    source.write_bytes(BINARY)
    number = await master.submit("SHELL", {"script": f"cat '{source}'"})
    await master.table.ended(number)
    whole = await reader.view(ref(number))
    assert (whole.data, whole.offset, whole.size, whole.finished) == (
        *(BINARY, 0, len(BINARY)),
        True,
    )
    assert (await reader.view(ref(number), 250, 20)).data == BINARY[250:270]
    end = await reader.view(ref(number), -3)
    assert (end.data, end.offset) == (BINARY[-3:], len(BINARY) - 3)
    assert (await reader.view(ref(number), -(10**6), 2)).data == BINARY[:2]
    behind = await reader.view(ref(number), 10**6)
    assert (behind.data, behind.size) == (b"", len(BINARY))
    assert await reader.download(ref(number)) == BINARY


async def test_log_is_found_under_the_names_that_the_cluster_has_had(
    master: FakeMaster, reader: Reader, cluster: ClusterSettings
) -> None:
    number = await master.submit("SHELL", {"script": "printf unnamed"})
    await master.table.ended(number)
    file = log_file(cluster.data, number)  # this master tells no name, as earlier versions

    def named(*clusters: str, may_be_unnamed: bool = False) -> pb.LogRef:
        found = ref(number)
        found.clusters.extend(clusters)
        found.may_be_unnamed = may_be_unnamed
        return found

    assert (await reader.view(named("present", may_be_unnamed=True))).data == b"unnamed"
    with pytest.raises(PeerRefused, match="no log of task instance"):
        await reader.view(named("present"))  # its id had another log under an earlier name
    for uid in ("former", "present"):
        place = file.parents[2] / log_workflow(uid, "tests", "wf") / "7" / file.name
        place.parent.mkdir(parents=True)
        place.write_text(uid)
        found = named("present", "former", may_be_unnamed=True)
        assert (await reader.view(found)).data == uid.encode()
        assert await reader.download(found) == uid.encode()
    assert (await reader.view(named("former"))).data == b"former"
    assert (await reader.view(ref(number))).data == b"unnamed", "an API of an earlier version"


async def test_one_view_is_at_most_a_mebibyte_and_a_download_everything(
    master: FakeMaster, reader: Reader
) -> None:
    script = f"head -c {3 * MEBIBYTE + 5} /dev/zero | tr '\\0' 'x'"
    number = await master.submit("SHELL", {"script": script})
    await master.table.ended(number)
    first = await reader.view(ref(number))
    assert len(first.data) == LONGEST_VIEW == MEBIBYTE
    assert first.size == 3 * MEBIBYTE + 5
    assert await reader.download(ref(number)) == b"x" * (3 * MEBIBYTE + 5)


async def test_follower_gets_output_while_it_is_written_and_then_the_end(
    master: FakeMaster, reader: Reader, tmp_path: Path
) -> None:
    go = tmp_path / "go"
    script = f"echo one; {until(go)}; printf two"
    number = await master.submit("SHELL", {"script": script})
    await master.table.wait(number, "RUNNING")
    seen, tail = bytearray(), bytearray()
    following = asyncio.create_task(reader.follow(ref(number), seen))
    await eventually(lambda: seen == b"one\n")
    assert not (await reader.view(ref(number))).finished
    from_middle = asyncio.create_task(reader.follow(ref(number), tail, offset=2))
    go.touch()
    async with asyncio.timeout(DEADLINE_S):
        await following
        await from_middle
    assert seen == b"one\ntwo"
    assert tail == b"e\ntwo"
    assert (await reader.view(ref(number))).finished


async def test_follower_may_come_before_the_task_has_started(
    master: FakeMaster, reader: Reader
) -> None:
    master.open.clear()
    number = await master.submit("SHELL", {"script": "echo here"})
    await eventually(lambda: number in master.asked)
    early = await reader.view(ref(number))
    assert (early.data, early.size, early.finished) == (b"", 0, False)
    seen = bytearray()
    following = asyncio.create_task(reader.follow(ref(number), seen))
    await asyncio.wait([following], timeout=0.3)
    assert not following.done()
    master.open.set()
    async with asyncio.timeout(DEADLINE_S):
        await following
    assert seen == b"here\n"


async def test_unknown_logs_and_bad_addresses_are_refused_in_words(
    master: FakeMaster, reader: Reader, cluster: ClusterSettings
) -> None:
    with pytest.raises(PeerRefused, match="no log of task instance 4711") as refused:
        await reader.view(ref(4711))
    assert refused.value.code == "NOT_FOUND"
    with pytest.raises(PeerRefused, match="no log of task instance 4711") as refused:
        await reader.follow(ref(4711), bytearray())
    assert refused.value.code == "NOT_FOUND"
    with pytest.raises(PeerRefused) as refused:
        await reader.view(ref(1, workflow="../../../../etc"))
    assert refused.value.code == "INVALID_ARGUMENT"
    # A link in the log's place leads nowhere.
    link = log_file(cluster.data, 4712)
    link.parent.mkdir(parents=True, exist_ok=True)
    link.symlink_to("/etc/passwd")
    with pytest.raises(PeerRefused) as refused:
        await reader.view(ref(4712))
    assert refused.value.code == "NOT_FOUND"

"""Logs, proxied from a worker over gRPC."""

import asyncio
import io
import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import httpx
import pytest

from shoal.api.operations.logs import LogPart, text_of
from shoal.api.services import Services
from shoal.core.runs.states import TaskState
from shoal.runtime.log_archive import LogArchive
from shoal.runtime.settings import ClusterSettings
from tests.integration.api.conftest import PREFIX, Api, fields_of, problem_of
from tests.integration.api.fake_worker import FakeWorker, fake_worker
from tests.integration.api.runs.attempts import first_task, log_of, set_state
from tests.integration.api.sse_reader import Reader, stream
from tests.support.waiting import DEADLINE_S

TEXT = "über ☃ 🐟 fish\n".encode() * 50


@pytest.fixture
async def worker(services: Services, cluster: ClusterSettings) -> AsyncIterator[FakeWorker]:
    """A worker registered as w1."""
    async with fake_worker(services, cluster) as found:
        yield found


async def view(api: Api, task: dict[str, Any], query: str = "") -> Any:
    answer = await api.client.get(f"{log_of(task)}?{query}")
    assert answer.status_code == 200, answer.text
    return answer.json()


async def test_ranges_put_together_are_the_whole(api: Api, worker: FakeWorker) -> None:
    task = await set_state(api, await api.run(), TaskState.SUCCEEDED, "w1")
    await worker.log(task).write(TEXT, finished=True)
    text, offset = "", 0
    for _ in range(len(TEXT)):
        part = await view(api, task, f"offset={offset}&limit=7")
        assert part["offset"] == offset
        assert part["size"] == len(TEXT)
        assert part["finished"] is True
        text, offset = text + part["data"], part["next_offset"]
        if offset == len(TEXT):
            break
    assert text == TEXT.decode()
    assert (await view(api, task))["data"] == text
    assert (await view(api, task, "offset=-6"))["data"] == " fish\n"[-6:]
    tail = await view(api, task, "offset=-8")  # in the middle of the fish
    assert (tail["data"], tail["next_offset"]) == (" fish\n", len(TEXT))
    beyond = await view(api, task, f"offset={len(TEXT) + 100}")
    assert (beyond["data"], beyond["next_offset"]) == ("", len(TEXT))


@pytest.mark.parametrize(
    ("part", "from_end", "expected"),
    [
        (LogPart(b"a\xc3", 0, 2, False), False, ("a", 0, 1)),
        (LogPart(b"a\xc3", 0, 2, True), False, ("a�", 0, 2)),
        (LogPart(b"a\xc3", 0, 3, True), False, ("a", 0, 1)),
        (LogPart(b"\xf0\x9f", 0, 9, False), False, ("�", 0, 2)),
        (LogPart(b"\xbc\xff\x00", 5, 8, True), False, ("��\0", 5, 8)),
        (LogPart(b"\xbcx", 5, 7, True), True, ("x", 6, 7)),
        (LogPart(b"\xbcx", 0, 2, True), True, ("�x", 0, 2)),
        (LogPart(b"", 3, 3, False), False, ("", 3, 3)),
    ],
)
def test_bytes_that_are_no_whole_text(
    part: LogPart, from_end: bool, expected: tuple[str, int, int]
) -> None:
    assert text_of(part, from_end=from_end) == expected


async def test_a_log_before_its_attempt_has_started_is_empty(api: Api, worker: FakeWorker) -> None:
    run = await api.run()
    nothing = {"data": "", "offset": 0, "next_offset": 0, "size": 0}
    assert await view(api, await first_task(api, run)) == {**nothing, "finished": False}
    claimed = await set_state(api, run, TaskState.CLAIMED, "w1")
    assert await view(api, claimed) == {**nothing, "finished": False}


async def test_a_skipped_task_has_a_finished_empty_log(api: Api) -> None:
    task = await set_state(api, await api.run(), TaskState.SKIPPED, None)
    assert (await view(api, task))["finished"] is True
    whole = await api.client.get(f"{log_of(task)}/raw")
    assert (whole.status_code, whole.content) == (200, b"")


async def test_a_log_that_its_worker_does_not_have(api: Api, worker: FakeWorker) -> None:
    task = await set_state(api, await api.run(), TaskState.FAILED, "w1")
    for path in ("", "/raw", "/follow"):
        document = problem_of(await api.client.get(log_of(task) + path), 404, "not-found")
        assert "has no log on worker w1" in document["detail"]


async def test_a_worker_that_is_gone_is_named(api: Api) -> None:
    task = await set_state(api, await api.run(), TaskState.FAILED, "w9")
    for path in ("", "/raw", "/follow"):
        answer = await api.client.get(log_of(task) + path)
        assert "worker w9 " in problem_of(answer, 503, "log-unavailable")["detail"]
        assert answer.headers["retry-after"] == "1"


@pytest.fixture
def archive(services: Services, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> LogArchive:
    """The archive of this API."""
    found = LogArchive(str(tmp_path / "archive"), "uid")
    monkeypatch.setattr(services.logs, "_archive", found)
    return found


@pytest.mark.parametrize("gone", ["worker", "log", "deleted", "silent"])
async def test_log_that_no_worker_has_any_more_comes_from_the_archive(
    live: Api, services: Services, cluster: ClusterSettings, archive: LogArchive, gone: str
) -> None:
    content = TEXT * 2000  # more than one view
    run = await live.run()
    told: dict[str, Any] = {"log_retention_days": 1e-9} if gone == "deleted" else {}
    async with AsyncExitStack() as stack:
        if gone != "worker":
            worker = await stack.enter_async_context(fake_worker(services, cluster, **told))
            if gone == "silent":
                await worker.stop()
        task = await set_state(live, run, TaskState.SUCCEEDED, "w1")
        archive.put(run.id, task["id"], io.BytesIO(content))
        part = await view(live, task, f"offset={len(TEXT)}&limit=6")
        assert (part["offset"], part["size"]) == (len(TEXT), len(content))
        assert (part["data"], part["finished"]) == (TEXT[:6].decode(), True)
        assert (await view(live, task, "offset=-6"))["data"] == " fish\n"[-6:]
        beyond = await view(live, task, f"offset={len(content) + 100}")
        assert (beyond["data"], beyond["next_offset"]) == ("", len(content))
        whole = await live.client.get(f"{log_of(task)}/raw")
        assert (whole.status_code, whole.content) == (200, content)
        some = await live.client.get(f"{log_of(task)}/raw", headers={"Range": "bytes=5-9"})
        assert (some.status_code, some.content) == (206, content[5:10])
        async with stream(live.client, f"{log_of(task)}/follow?offset={len(TEXT)}") as reader:
            text = await read_log(reader, len(content) - len(TEXT))
            assert text == content[len(TEXT) :].decode()
            event = await reader.next()
            assert event is not None
            assert event.kind == "end"


async def test_log_that_is_not_in_the_archive_either_is_told_as_before(
    api: Api, archive: LogArchive, worker: FakeWorker, tmp_path: Path
) -> None:
    task = await set_state(api, await api.run(), TaskState.FAILED, "w9")
    answer = await api.client.get(log_of(task))
    assert "worker w9 " in problem_of(answer, 503, "log-unavailable")["detail"]
    (tmp_path / "archive").write_text("")  # no folder: it cannot be read
    for path in ("", "/raw", "/follow"):
        answer = await api.client.get(log_of(task) + path)
        assert "worker w9 " in problem_of(answer, 503, "log-unavailable")["detail"]


async def test_log_of_a_task_that_runs_does_not_come_from_the_archive(
    api: Api, archive: LogArchive, worker: FakeWorker
) -> None:
    run = await api.run()
    task = await set_state(api, run, TaskState.RUNNING, "w1")
    archive.put(run.id, task["id"], io.BytesIO(b"when it was here before\n"))
    assert (await view(api, task))["data"] == ""
    await worker.log(task).write(b"now\n")
    assert (await view(api, task))["data"] == "now\n"


async def test_a_worker_that_does_not_answer_is_named(api: Api, worker: FakeWorker) -> None:
    task = await set_state(api, await api.run(), TaskState.RUNNING, "w1")
    await worker.stop()
    document = problem_of(await api.client.get(log_of(task)), 503, "log-unavailable")
    assert f"no answer from {worker.address}" in document["detail"]


async def test_a_restarted_worker_serves_what_it_wrote_under_its_old_id(
    api: Api, worker: FakeWorker, services: Services, cluster: ClusterSettings
) -> None:
    task = await set_state(api, await api.run(), TaskState.SUCCEEDED, "w1-before-restart")
    await worker.log(task).write(b"kept\n", finished=True)
    async with fake_worker(services, cluster, "w2"):
        assert (await view(api, task))["data"] == "kept\n"
        whole = await api.client.get(f"{log_of(task)}/raw")
        assert whole.content == b"kept\n"


async def test_ranges_that_cannot_be(api: Api) -> None:
    for query in ("limit=0", "limit=1048577", "limit=x", "offset=1e3", f"offset={2**70}"):
        answer = await api.client.get(f"{PREFIX}/task-instances/1/log?{query}")
        [field] = fields_of(problem_of(answer, 422, "invalid-request"))
        assert query.startswith(field)


async def test_the_raw_log_is_a_download(api: Api, worker: FakeWorker) -> None:
    run = await api.run()
    task = await set_state(api, run, TaskState.SUCCEEDED, "w1")
    content = bytes(range(256)) * 9000  # more than two megabytes, and no text
    await worker.log(task).write(content, finished=True)
    whole = await api.client.get(f"{log_of(task)}/raw")
    assert whole.status_code == 200
    assert whole.content == content
    assert whole.headers["content-length"] == str(len(content))
    assert whole.headers["content-type"] == "text/plain; charset=utf-8"
    assert whole.headers["x-content-type-options"] == "nosniff"
    assert whole.headers["accept-ranges"] == "bytes"
    assert whole.headers["content-disposition"] == (
        f'attachment; filename="daily-{run.id}-fetch-1.log"'
    )


RANGES = [
    ("bytes=0-0", 0, 1),
    ("bytes=5-", 5, 3000),
    ("bytes=-5", 2995, 3000),
    ("bytes=-9999", 0, 3000),
    ("bytes=100-99999", 100, 3000),
    ("bytes=100-199", 100, 200),
]


async def test_one_range_of_bytes(api: Api, worker: FakeWorker) -> None:
    task = await set_state(api, await api.run(), TaskState.SUCCEEDED, "w1")
    content = bytes(n % 251 for n in range(3000))
    await worker.log(task).write(content, finished=True)
    for header, start, end in RANGES:
        part = await api.client.get(f"{log_of(task)}/raw", headers={"Range": header})
        assert part.status_code == 206
        assert part.content == content[start:end]
        assert part.headers["content-range"] == f"bytes {start}-{end - 1}/3000"


async def test_other_range_headers(api: Api, worker: FakeWorker) -> None:
    task = await set_state(api, await api.run(), TaskState.SUCCEEDED, "w1")
    await worker.log(task).write(b"x" * 10, finished=True)
    for ignored in ("bytes=0-1,3-4", "lines=1-2", "bytes=-", "bytes=5-2", "bytes=a-b"):
        answer = await api.client.get(f"{log_of(task)}/raw", headers={"Range": ignored})
        assert (answer.status_code, answer.content) == (200, b"x" * 10)
    for impossible in ("bytes=10-", "bytes=10-20", "bytes=-0"):
        answer = await api.client.get(f"{log_of(task)}/raw", headers={"Range": impossible})
        problem_of(answer, 416, "range-not-satisfiable")
        assert answer.headers["content-range"] == "bytes */10"


async def test_a_download_that_breaks_off_is_noticed(live: Api, worker: FakeWorker) -> None:
    task = await set_state(live, await live.run(), TaskState.SUCCEEDED, "w1")
    held = worker.log(task)
    await held.write(b"x" * 2_000_000, finished=True)
    held.promised = 10
    with pytest.raises(httpx.RemoteProtocolError):
        await live.client.get(f"{log_of(task)}/raw")


async def read_log(reader: Reader, until: int) -> str:
    """Read ``log`` events until their text has so many bytes; check the offsets."""
    text = ""
    while len(text.encode()) < until:
        event = await reader.next()
        assert event is not None
        assert event.kind == "log"
        text += json.loads(event.data)["data"]
    return text


async def test_following_from_before_the_start_to_the_end(live: Api, worker: FakeWorker) -> None:
    run = await live.run()
    task = await first_task(live, run)
    async with stream(live.client, f"{log_of(task)}/follow") as reader:
        held = worker.log(task)
        await set_state(live, run, TaskState.RUNNING, "w1")
        await held.write(b"one\n\xe2\x98")
        event = await reader.next()
        assert event is not None
        assert (event.kind, event.id) == ("log", "4")
        assert json.loads(event.data) == {"offset": 0, "data": "one\n"}
        await held.write(b"\x83\xff")
        event = await reader.next()
        assert event is not None
        assert (event.id, json.loads(event.data)) == ("8", {"offset": 4, "data": "☃\ufffd"})
        await held.write(b"\xe2", finished=True)
        event = await reader.next()
        assert event is not None
        assert json.loads(event.data) == {"offset": 8, "data": "\ufffd"}
        event = await reader.next()
        assert event is not None
        assert (event.kind, event.data) == ("end", "{}")
        assert await reader.next() is None


async def test_following_resumes_at_a_byte(live: Api, worker: FakeWorker) -> None:
    task = await set_state(live, await live.run(), TaskState.SUCCEEDED, "w1")
    await worker.log(task).write(TEXT, finished=True)
    address = f"{log_of(task)}/follow"
    async with stream(live.client, address) as reader:
        assert await read_log(reader, len(TEXT)) == TEXT.decode()
    line = len(TEXT) // 50
    async with stream(live.client, address, **{"Last-Event-ID": str(line)}) as reader:
        assert await read_log(reader, len(TEXT) - line) == TEXT[line:].decode()
    async with stream(live.client, f"{address}?offset={line * 2}") as reader:
        assert await read_log(reader, len(TEXT) - 2 * line) == TEXT[2 * line :].decode()
    bad = await live.client.get(address, headers={"Last-Event-ID": "x"})
    assert fields_of(problem_of(bad, 422, "invalid-request")).keys() == {"Last-Event-ID"}


async def test_following_a_task_that_never_runs(live: Api) -> None:
    run = await live.run()
    task = await first_task(live, run)
    async with stream(live.client, f"{log_of(task)}/follow") as reader:
        await set_state(live, run, TaskState.SKIPPED, None)
        event = await reader.next()
        assert event is not None
        assert event.kind == "end"


async def test_a_follower_is_told_when_the_worker_goes_away(
    live: Api, services: Services, cluster: ClusterSettings
) -> None:
    run = await live.run()
    async with fake_worker(services, cluster) as worker:
        task = await set_state(live, run, TaskState.RUNNING, "w1")
        await worker.log(task).write(b"one\n")
        async with stream(live.client, f"{log_of(task)}/follow") as reader:
            assert await read_log(reader, 4) == "one\n"
            await worker.stop()
            event = await reader.next()
            assert event is not None
            assert event.kind == "problem"
            assert "worker w1 holds the log" in json.loads(event.data)["detail"]
            assert await reader.next() is None


async def test_a_follower_that_leaves_is_forgotten_by_the_worker(
    live: Api, worker: FakeWorker
) -> None:
    task = await set_state(live, await live.run(), TaskState.RUNNING, "w1")
    held = worker.log(task)
    await held.write(b"one\n")
    async with stream(live.client, f"{log_of(task)}/follow") as reader:
        assert await read_log(reader, 4) == "one\n"
        assert held.changed._waiters
    async with asyncio.timeout(DEADLINE_S):
        while held.changed._waiters:
            await asyncio.sleep(0.01)


async def test_following_ends_when_the_process_stops(live: Api, worker: FakeWorker) -> None:
    task = await set_state(live, await live.run(), TaskState.RUNNING, "w1")
    worker.log(task)
    async with stream(live.client, f"{log_of(task)}/follow") as reader:
        live.services.streams.stopping.set()
        last = await reader.next(comments=True)
        assert last is not None
        assert "the server stops" in last.comment
        assert await reader.next() is None


async def test_deleted_log_is_told_from_one_that_never_was(
    api: Api, services: Services, cluster: ClusterSettings
) -> None:
    """Also by a worker that was restarted since, and goes by another id."""
    run = await api.run("old")
    task = await set_state(api, run, TaskState.SUCCEEDED, "w-1-abcd")
    for worker_id in ("w-1-abcd", "w-1-ef01"):
        told = {"name": "w-1", "log_retention_days": 1e-9}
        async with fake_worker(services, cluster, worker_id, **told):
            for path in ("", "/raw", "/follow"):
                answer = await api.client.get(log_of(task) + path)
                detail = problem_of(answer, 404, "not-found")["detail"]
                assert detail == (
                    f"the log of task instance {task['id']} was deleted after 1e-09 days by "
                    "log_retention_days"
                )
    async with fake_worker(services, cluster, "w-1-2345", name="w-1", log_retention_days=90.0):
        problem_of(await api.client.get(log_of(task)), 503, "log-unavailable")

import asyncio
import os
from pathlib import Path

import pytest

from shoal.worker.logs.files import CHUNK, BadLogAddress, LogNotFound, LogStore
from tests.support.waiting import DEADLINE_S

ADDRESS = ("shop.daily", 12, 34)


@pytest.fixture
def store(tmp_path: Path) -> LogStore:
    return LogStore(tmp_path / "logs")


def fill(store: LogStore, content: bytes) -> Path:
    path = store.path(*ADDRESS)
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("ab") as file:
        file.write(content)
    return path


def test_the_three_ids_make_the_path(store: LogStore) -> None:
    assert store.path(*ADDRESS) == store.root / "shop.daily" / "12" / "34.log"


@pytest.mark.parametrize(
    "workflow",
    ["", "..", ".hidden", "../x", "a/b", "a\\b", "a\0", "a\n", "x" * 202, "ä", " a", "a b"],
)
def test_other_workflow_names_are_refused(store: LogStore, workflow: str) -> None:
    with pytest.raises(BadLogAddress):
        store.open_read(workflow, 1, 2)


@pytest.mark.parametrize("number", [-1, True, "1", "../1", 1.0, None])
def test_ids_are_whole_numbers(store: LogStore, number: object) -> None:
    with pytest.raises(BadLogAddress):
        store.path("a", number, 1)  # type: ignore[arg-type]  # the wrong type is the subject
    with pytest.raises(BadLogAddress):
        store.path("a", 1, number)  # type: ignore[arg-type]  # the wrong type is the subject


def test_any_range_of_any_bytes_can_be_read(store: LogStore) -> None:
    content = bytes(range(256)) * 4
    fill(store, content)
    for offset, limit in [(0, 10), (100, 300), (1000, 500), (1024, 5), (5000, 5), (0, 0)]:
        assert store.read_range(*ADDRESS, offset, limit) == (
            content[offset : offset + limit],
            1024,
        )


@pytest.mark.parametrize(("offset", "limit"), [(-1, 1), (0, -1)])
def test_negative_ranges_are_refused(store: LogStore, offset: int, limit: int) -> None:
    fill(store, b"x")
    with pytest.raises(ValueError, match="negative"):
        store.read_range(*ADDRESS, offset, limit)


def test_a_missing_log_is_named_by_its_ids_not_by_its_path(store: LogStore) -> None:
    with pytest.raises(LogNotFound, match=r"34 in instance 12 of shop\.daily") as error:
        store.read_range(*ADDRESS, 0, 1)
    assert str(store.root) not in str(error.value)
    assert not store.exists(*ADDRESS)


def test_links_are_not_followed_wherever_they_are(store: LogStore, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    (secret / "12").mkdir(parents=True)
    (secret / "12" / "34.log").write_text("secret")
    path = store.path(*ADDRESS)

    path.parent.mkdir(parents=True)
    path.symlink_to(secret / "12" / "34.log")
    assert not store.exists(*ADDRESS)
    path.unlink()
    path.parent.rmdir()
    path.parent.symlink_to(secret / "12")
    assert not store.exists(*ADDRESS)
    path.parent.unlink()
    path.parent.parent.rmdir()
    path.parent.parent.symlink_to(secret)
    assert not store.exists(*ADDRESS)
    path.parent.parent.unlink()
    fill(store, b"mine")
    assert store.exists(*ADDRESS)


def test_a_pipe_or_folder_in_a_logs_place_is_no_log(store: LogStore) -> None:
    path = store.path(*ADDRESS)
    path.parent.mkdir(parents=True)
    os.mkfifo(path)
    assert not store.exists(*ADDRESS)
    path.unlink()
    path.mkdir()
    assert not store.exists(*ADDRESS)


def test_no_descriptor_stays_open(store: LogStore) -> None:
    fill(store, b"x")
    before = os.listdir("/proc/self/fd")
    store.read_range(*ADDRESS, 0, 1)
    store.exists("a", 1, 2)
    assert os.listdir("/proc/self/fd") == before


async def test_following_yields_everything_until_finished(store: LogStore) -> None:
    finished = asyncio.Event()
    seen = bytearray()
    grown = asyncio.Event()

    async def follow() -> None:
        async for chunk in store.follow(*ADDRESS, finished):
            seen.extend(chunk)
            grown.set()

    async with asyncio.timeout(DEADLINE_S), asyncio.TaskGroup() as group:
        group.create_task(follow())  # before the log exists
        content = b""
        for piece in (b"one\n", b"\0\xff" * CHUNK, b"last, without newline"):
            fill(store, piece)
            content += piece
            while len(seen) < len(content):
                grown.clear()
                await grown.wait()
        # What is written right before the end is not lost (the reader sleeps at this moment).
        fill(store, b"final words")
        finished.set()
    assert bytes(seen) == content + b"final words"


async def test_following_can_start_in_the_middle_of_a_finished_log(store: LogStore) -> None:
    fill(store, b"0123456789")
    finished = asyncio.Event()
    finished.set()
    assert [chunk async for chunk in store.follow(*ADDRESS, finished, offset=4)] == [b"456789"]


async def test_following_a_log_that_never_comes_ends_empty(store: LogStore) -> None:
    finished = asyncio.Event()
    finished.set()
    assert [chunk async for chunk in store.follow(*ADDRESS, finished)] == []


async def test_following_checks_the_address(store: LogStore) -> None:
    with pytest.raises(BadLogAddress):
        await anext(store.follow("../x", 1, 2, asyncio.Event()))

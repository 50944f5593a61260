"""Lines of logs are found, in one log and in all of an instance, a bounded part at a time."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from shoal.api.operations.runs import log_search
from shoal.api.operations.runs.log_search import LineSearch, matcher
from shoal.api.services import Services
from shoal.core.runs.states import TaskState
from shoal.runtime.settings import ClusterSettings
from tests.integration.api.conftest import PREFIX, Api, fields_of, problem_of
from tests.integration.api.fake_worker import FakeWorker, fake_worker
from tests.integration.api.runs.attempts import log_of, set_state


@pytest.fixture
async def worker(services: Services, cluster: ClusterSettings) -> AsyncIterator[FakeWorker]:
    """A worker registered as w1."""
    async with fake_worker(services, cluster) as found:
        yield found


LINES = [f"{i} {'ERROR timeout ü' if i % 10 == 3 else 'info'}" for i in range(40)]
TEXT = "".join(f"{line}\r\n" if i % 2 else f"{line}\n" for i, line in enumerate(LINES)).encode()


async def found(api: Api, task: dict[str, Any], **query: Any) -> Any:
    answer = await api.client.get(f"{log_of(task)}/search", params=query)
    assert answer.status_code == 200, answer.text
    return answer.json()


async def test_lines_of_one_log(api: Api, worker: FakeWorker) -> None:
    task = await set_state(api, await api.run(), TaskState.SUCCEEDED, "w1")
    await worker.log(task).write(TEXT, finished=True)
    shown = await found(api, task, text="timeout ü", context=2)
    assert [hit["line"] for hit in shown["hits"]] == LINES[3::10]
    assert (shown["next_offset"], shown["size"], shown["finished"]) == (None, len(TEXT), True)
    for hit in shown["hits"]:
        number = LINES.index(hit["line"])
        assert TEXT[hit["offset"] :].startswith(hit["line"].encode())
        assert hit["before"] == LINES[number - 2 : number]
        assert hit["after"] == LINES[number + 1 : number + 3]
    assert len((await found(api, task, regex=r"^\d3 ERROR\b"))["hits"]) == 3
    assert (await found(api, task, text="error"))["hits"] == []
    assert len((await found(api, task, text="error", ignore_case=True))["hits"]) == 4
    assert len((await found(api, task, regex="TimeOut", ignore_case=True))["hits"]) == 4


async def test_a_search_goes_on_where_it_has_stopped(
    api: Api, worker: FakeWorker, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = await set_state(api, await api.run(), TaskState.SUCCEEDED, "w1")
    await worker.log(task).write(TEXT + b"last ERROR", finished=True)
    for most, limit in ((1 << 20, 1), (60, 5), (33, 1)):
        monkeypatch.setattr(log_search, "MOST_BYTES", most)
        monkeypatch.setattr(log_search, "MOST_SEARCHED", most)
        lines, offset = [], 0
        while offset is not None:
            shown = await found(api, task, text="ERROR", offset=offset, limit=limit)
            assert len(shown["hits"]) <= limit
            lines += [hit["line"] for hit in shown["hits"]]
            assert shown["next_offset"] is None or shown["next_offset"] > offset
            offset = shown["next_offset"]
        assert lines == [*LINES[3::10], "last ERROR"]


async def test_a_log_that_grows_is_searched_up_to_its_last_whole_line(
    api: Api, worker: FakeWorker
) -> None:
    task = await set_state(api, await api.run(), TaskState.RUNNING, "w1")
    await worker.log(task).write(b"ERROR 1\nERR")
    shown = await found(api, task, text="ERR")
    assert [hit["line"] for hit in shown["hits"]] == ["ERROR 1"]
    assert (shown["next_offset"], shown["finished"]) == (8, False)
    await worker.log(task).write(b"OR 2\n")
    shown = await found(api, task, text="ERR", offset=shown["next_offset"])
    assert [hit["line"] for hit in shown["hits"]] == ["ERROR 2"]
    assert shown["next_offset"] == 16


async def test_logs_of_an_instance(api: Api, worker: FakeWorker) -> None:
    run = await api.run()
    task = await set_state(api, run, TaskState.SUCCEEDED, "w1")
    await worker.log(task).write(TEXT, finished=True)
    path = f"{PREFIX}/instances/{run.id}/log-search"
    lines, cursor, pages = [], None, 0
    while pages == 0 or cursor is not None:
        query: dict[str, Any] = {
            "text": "ERROR",
            "limit": 3,
            **({"cursor": cursor} if cursor else {}),
        }
        shown = (await api.client.get(path, params=query)).json()
        lines += [hit["line"] for one in shown["items"] for hit in one["hits"]]
        assert {one["task_instance_id"] for one in shown["items"]} == {task["id"]}
        cursor, pages = shown["next"], pages + 1
    assert lines == LINES[3::10]
    assert pages == 2
    worker.logs.clear()
    [lost] = (await api.client.get(path, params={"text": "x"})).json()["items"]
    assert lost["hits"] == []
    assert "log" in lost["problem"]


async def test_patterns_that_cannot_be_used_are_refused(api: Api, worker: FakeWorker) -> None:
    task = await set_state(api, await api.run(), TaskState.SUCCEEDED, "w1")
    await worker.log(task).write(TEXT, finished=True)
    wrong: tuple[tuple[dict[str, Any], str, str], ...] = (
        ({}, "text", "either"),
        ({"text": "a", "regex": "a"}, "text", "either"),
        ({"regex": "("}, "regex", "unclosed group"),
        ({"regex": "(?=a)b"}, "regex", "look-around"),
        ({"regex": r"(a)\1"}, "regex", "backreferences"),
        ({"regex": "(a{1000}){1000}"}, "regex", "size limit"),
        ({"regex": "a" * 201}, "regex", "200"),
        ({"text": "a", "limit": 501}, "limit", "500"),
    )
    for query, field, advice in wrong:
        answer = await api.client.get(f"{log_of(task)}/search", params=query)
        assert advice in fields_of(problem_of(answer, 422, "invalid-request"))[field]


def test_no_pattern_takes_more_than_linear_time() -> None:
    """A backtracking engine would not end in the lifetime of the universe."""
    matches = matcher(None, "(a*)*(a*)*(a|a)*b$", False)
    assert not matches("a" * 50_000)
    assert matches("a" * 50_000 + "b")


def test_a_long_line_is_shortened() -> None:
    search = LineSearch(matcher("end", None, False), 0, 5)
    assert search.feed(b"x" * 5_000 + b"end\n", 7) == 7 + 5_004
    [hit] = search.hits
    assert (hit.offset, len(hit.line)) == (7, 2_001)

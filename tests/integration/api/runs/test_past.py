"""Past runs over HTTP: out of the exported history, for those who may see their project."""

import asyncio
import io
import os
import signal
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from shoal.api.settings import ApiSettings
from shoal.api.web.paging import encode_cursor, filtered
from shoal.insight.past.client import PastRuns
from shoal.runtime.settings import ClusterSettings
from shoal.sql.repositories.events import NewEvent
from shoal.sql.schema.tables import workflow_instance
from tests.integration.api.access.people import account, bearer, token
from tests.integration.api.conftest import PREFIX, Api, in_process, opened, problem_of
from tests.integration.api.runs.past import ended, exported, purged
from tests.support.waiting import eventually

PAST = f"{PREFIX}/past-instances"
NOW = datetime.now(UTC).replace(microsecond=0)


@pytest.fixture
async def api(cluster: ClusterSettings, tmp_path: Path) -> AsyncIterator[Api]:
    """An API with a history and an archive of logs."""
    cluster = cluster.model_copy(update={"logs_url": str(tmp_path / "logs")})
    async with opened(cluster, ApiSettings(port=0)) as services, in_process(services) as found:
        await found.publish("daily", "p")
        yield found


async def test_a_purged_run_is_read_out_of_the_history(api: Api) -> None:
    # Not before the day on which the workflow was published.
    now = datetime.now(UTC).replace(microsecond=0)
    run = await ended(api, "daily", "p", now)
    assert api.services.past._process is None, "nobody has asked"
    await exported(api)
    kept = (await api.client.get(PAST)).json()
    assert [(one["id"], one["in_database"]) for one in kept["items"]] == [(run.id, True)]
    await purged(api, run)
    answer = problem_of_past(await api.client.get(f"{PREFIX}/instances/{run.id}"))
    assert answer["past"] == f"{PAST}/{run.id}"
    found = (await api.client.get(answer["past"])).json()
    assert (found["id"], found["state"], found["in_database"]) == (run.id, "STOPPED", False)
    assert found["finished_at"] == now.isoformat().replace("+00:00", "Z")
    assert {one["task"] for one in found["attempts"]} <= {"fetch", "report"}
    assert [(one["name"], one["depends_on"]) for one in found["tasks"]] == [
        ("fetch", []),
        ("report", ["fetch"]),
    ]
    for part in ("baseline", "timeline"):
        told = problem_of_past(await api.client.get(f"{PREFIX}/instances/{run.id}/{part}"))
        assert told["past"] == f"{PAST}/{run.id}"
    problem_of(await api.client.get(f"{PREFIX}/instances/{run.id + 1}"), 404, "not-found")
    problem_of(await api.client.get(f"{PAST}/{run.id + 1}"), 404, "not-found")


def problem_of_past(response: object) -> dict[str, str]:
    document: dict[str, str] = response.json()  # type: ignore[attr-defined]
    assert document["status"] == 404  # type: ignore[comparison-overlap]
    assert "the exported history has it" in document["detail"]
    return document


async def test_pages_are_newest_first_and_filters_hold(api: Api) -> None:
    await api.publish("nightly", "p")
    days = {}
    for number in range(6):
        name = "daily" if number % 2 else "nightly"
        at = NOW - timedelta(days=number)
        days[(await ended(api, name, "p", at)).id] = (name, at)
    await exported(api)
    newest_first = sorted(days, key=lambda one: days[one][1], reverse=True)

    async def listed(query: str, limit: int = 2) -> list[int]:
        found, cursor, pages = [], "", 0
        while pages < 10:
            answer = await api.client.get(f"{PAST}?limit={limit}&{query}{cursor}")
            assert answer.status_code == 200, answer.text
            page, pages = answer.json(), pages + 1
            assert len(page["items"]) <= limit
            found += [one["id"] for one in page["items"]]
            if page["next"] is None:
                return found
            cursor = f"&cursor={page['next']}"
        raise AssertionError("no end")

    assert await listed("") == newest_first
    assert await listed("", 500) == newest_first
    daily = [one for one in newest_first if days[one][0] == "daily"]
    assert await listed("project=p&workflow=daily") == daily
    assert await listed("state=FAILED") == []
    assert await listed("state=STOPPED&state=FAILED", 4) == newest_first
    first, last = (NOW - timedelta(days=n) for n in (4, 1))
    assert await listed(f"from={first.date()}&to={last.date()}") == newest_first[1:5]
    problem_of(
        await api.client.get(f"{PAST}?from=2026-02-02&to=2026-02-01"), 422, "invalid-request"
    )
    cursor = (await api.client.get(f"{PAST}?limit=1")).json()["next"]
    answer = await api.client.get(f"{PAST}?limit=1&state=FAILED&cursor={cursor}")
    problem_of(answer, 422, "invalid-request")


async def test_a_cursor_of_a_day_that_there_is_not_ends_no_reader(api: Api) -> None:
    run = await ended(api, "daily", "p", NOW)
    await exported(api)
    kind = filtered("past-instances", None, None, [], None, None)
    cursor = encode_cursor(kind, 2**63 - 1, 1)
    page = (await api.client.get(f"{PAST}?cursor={cursor}")).json()
    assert [one["id"] for one in page["items"]] == [run.id]


async def test_who_may_not_see_a_project_sees_no_past_run_of_it(api: Api) -> None:
    run = await ended(api, "daily", "p", NOW)
    await exported(api)
    await purged(api, run)
    async with api.services.store.unit_of_work() as uow:
        await uow.projects.ensure("other", NOW)
        reader = await account(uow, "reader", NOW, {"p": "reader"})
        stranger = await account(uow, "stranger", NOW, {"other": "owner"})
        tokens = [(await token(uow, who, NOW))[1] for who in (reader, stranger)]
        await uow.commit()
    may, may_not = (bearer(one) for one in tokens)
    for headers, count in ((may, 1), (may_not, 0)):
        for query in ("", "?project=p"):
            page = (await api.client.get(f"{PAST}{query}", headers=headers)).json()
            assert len(page["items"]) == count
    assert (await api.client.get(f"{PAST}/{run.id}", headers=may)).status_code == 200
    hint = await api.client.get(f"{PREFIX}/instances/{run.id}", headers=may)
    assert problem_of_past(hint)["past"] == f"{PAST}/{run.id}"
    problem_of(await api.client.get(f"{PAST}/{run.id}", headers=may_not), 404, "not-found")
    for path in (f"instances/{run.id}", f"instances/{run.id}/baseline"):
        hidden = await api.client.get(f"{PREFIX}/{path}", headers=may_not)
        assert "history" not in problem_of(hidden, 404, "not-found")["detail"]


async def test_the_log_of_a_past_attempt_comes_from_the_archive(api: Api) -> None:
    run = await ended(api, "daily", "p", NOW)
    await exported(api)
    await purged(api, run)
    attempt = (await api.client.get(f"{PAST}/{run.id}")).json()["attempts"][0]["id"]
    log = f"{PAST}/{run.id}/attempts/{attempt}/log"
    assert (
        "keep_archived_logs_days"
        in problem_of(await api.client.get(log), 404, "not-found")["detail"]
    )
    archive = api.services.logs._archive
    assert archive is not None
    archive.put(run.id, attempt, io.BytesIO("grüße\n".encode()))
    assert (await api.client.get(log)).json()["data"] == "grüße\n"
    part = (await api.client.get(f"{log}?offset=-3")).json()
    assert (part["data"], part["finished"], part["size"]) == ("e\n", True, 8)
    other = await api.client.get(f"{PAST}/{run.id}/attempts/{attempt + 99}/log")
    problem_of(other, 404, "not-found")


async def test_a_run_that_ended_again_is_listed_once(api: Api) -> None:
    run = await ended(api, "daily", "p", NOW - timedelta(days=3))
    store = await exported(api)
    async with api.services.store.unit_of_work() as uow:
        # As after a recovery that ended again: another end, with an event.
        instances = workflow_instance.update().where(workflow_instance.c.id == run.id)
        await uow.connection.execute(instances.values(state="FAILED", finished_at=NOW))
        await uow.events.add([NewEvent(NOW, "instance.state", "p", {}, run.id)])
        await uow.commit()
    await exported(api)
    assert sum(file.rows for file in store.contents().of("instances")) == 2
    page = (await api.client.get(PAST)).json()
    assert [(one["id"], one["state"]) for one in page["items"]] == [(run.id, "FAILED")]
    assert (await api.client.get(f"{PAST}/{run.id}")).json()["state"] == "FAILED"
    # Also where the row that counts is not asked for.
    assert (await api.client.get(f"{PAST}?state=STOPPED")).json()["items"] == []


async def test_without_a_history_the_answer_says_what_to_do(
    cluster: ClusterSettings,
) -> None:
    cluster = cluster.model_copy(update={"history_url": ""})
    async with opened(cluster, ApiSettings(port=0)) as services, in_process(services) as api:
        for path in (PAST, f"{PAST}/1"):
            answer = problem_of(await api.client.get(path), 404, "no-history")
            assert "set history_url" in answer["detail"]
        problem_of(await api.client.get(f"{PREFIX}/instances/1"), 404, "not-found")
        assert (await api.client.get(f"{PREFIX}/cluster")).json()["history"] is None


async def test_a_history_that_cannot_be_read_is_no_defect_of_the_api(api: Api) -> None:
    run = await ended(api, "daily", "p", NOW)
    store = await exported(api)
    [file] = store.contents().of("instances")
    content = _replaced(store.root, file.path, b"x" * file.size)
    answer = problem_of(await api.client.get(PAST), 503, "history-unavailable")
    assert "cannot be read" in answer["detail"]
    _replaced(store.root, file.path, content)
    assert (await api.client.get(f"{PAST}/{run.id}")).status_code == 200
    # A process that is killed, or does not answer, is followed by another one.
    process = api.services.past._process
    assert process is not None
    process.kill()
    await asyncio.to_thread(process.wait)
    assert (await api.client.get(PAST)).status_code == 200
    process = api.services.past._process
    assert process is not None
    os.kill(process.pid, signal.SIGSTOP)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(PastRuns, "ANSWER_S", 0.5)
        answer = problem_of(await api.client.get(PAST), 503, "history-unavailable")
    assert "has not answered in 0.5 s" in answer["detail"]
    assert (await api.client.get(PAST)).status_code == 200


async def test_a_history_that_is_away_is_not_taken_for_an_empty_one(api: Api) -> None:
    for _ in range(2):
        await ended(api, "daily", "p", NOW)
        store = await exported(api)
    assert store.last_sequence() > 1
    away = f"{store.root}-away"
    os.rename(store.root, away)
    for path in (PAST, f"{PAST}/1"):
        answer = problem_of(await api.client.get(path), 503, "history-unavailable")
        assert "is the storage mounted" in answer["detail"]
    os.rename(away, store.root)
    assert len((await api.client.get(PAST)).json()["items"]) == 2


def _replaced(root: str, path: str, content: bytes) -> bytes:
    """Write a file anew; return what it was."""
    file = Path(root, path)
    before = file.read_bytes()
    file.write_bytes(content)
    return before


async def test_the_process_ends_when_nobody_asks(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(PastRuns, "IDLE_S", 0.2)
    await ended(api, "daily", "p", NOW)
    await exported(api)
    assert len((await api.client.get(PAST)).json()["items"]) == 1
    await eventually(lambda: api.services.past._process is None)
    assert len((await api.client.get(PAST)).json()["items"]) == 1


async def test_the_cluster_says_how_the_export_stands(api: Api) -> None:
    assert (await api.client.get(f"{PREFIX}/cluster")).json()["history"] == {
        "verified_at": None,
        "trouble": None,
        "since": None,
    }
    await exported(api)
    found = (await api.client.get(f"{PREFIX}/cluster")).json()["history"]
    assert found["verified_at"] is not None
    await api.store(lambda uow: uow.verified_history.note_trouble("the storage is away", NOW))
    found = (await api.client.get(f"{PREFIX}/cluster")).json()["history"]
    assert (found["trouble"], found["since"]) == (
        "the storage is away",
        NOW.isoformat().replace("+00:00", "Z"),
    )
    await exported(api)
    assert (await api.client.get(f"{PREFIX}/cluster")).json()["history"]["trouble"] is None

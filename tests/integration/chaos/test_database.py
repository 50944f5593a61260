"""The checker on a real database: what is planted there with plain SQL is found."""

import asyncio
import shutil
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from shoal.core.definition.model import WorkflowSpec
from shoal.core.runs.events import Begun, TaskClaimed, TaskEnded, TaskStarted
from shoal.core.runs.states import TaskSignal
from shoal.sql import Database
from tests.chaos.cluster.cluster import DATABASES, SQLITE
from tests.chaos.cluster.queries import connected, fetch, is_sqlite
from tests.chaos.judging import audit
from tests.chaos.judging.checker import check
from tests.chaos.judging.history import History
from tests.chaos.judging.verdict import Verdict
from tests.chaos.workload.dags import PASSING, Site, tickers
from tests.chaos.workload.ledger import Kind, Row
from tests.chaos.workload.workload import Asked
from tests.integration.sql.given import LATER, NOW, accepted, instance, start, stored
from tests.support.database.postgresql import PostgresqlServer
from tests.support.instances import create

PARTITIONS = 4
EPOCH = 50


@dataclass(frozen=True)
class Honest:
    """A database (its URL, or its name as a template), and what is known beside it."""

    url: str
    rows: Sequence[Row]
    asked: Sequence[Asked]

    def check(self, rows: Sequence[Row] | None = None) -> Verdict:
        """Judge it, with other rows of the ledger if they are given."""
        rows = self.rows if rows is None else rows
        return check(self.url, rows, None, [], asked=self.asked)


async def one_instance(url: str) -> tuple[list[Row], list[Asked]]:
    """Run one instance of one task to its end, as a master does; return what is known of it."""
    definition = tickers(Site(Path("/nowhere"), "marker"), enabled=False)[0]
    spec = WorkflowSpec.model_validate(definition)
    async with Database(url) as database:
        await database.migrate()
        audit.install(url)
        async with database.unit_of_work() as uow:
            await uow.partitions.ensure(PARTITIONS)
            await uow.partitions.raise_epochs({0: EPOCH}, "master")
            workflow = await uow.workflows.publish(spec, NOW)
            await uow.commit()
        (command,) = await accepted(database, start(workflow.version.workflow_id, "key-1"))
        async with database.unit_of_work() as uow:
            (run,) = await create(uow, [instance(command)])
            await uow.commands.done(command.id, run.id, NOW)
            await uow.commit()
        await stored(database, run, Begun(NOW))
        (attempt,) = run.attempts.values()
        assert attempt.id is not None
        await stored(database, run, TaskClaimed(attempt.id, "w", NOW))
        await stored(database, run, TaskStarted(attempt.id, "w", NOW))
        ended = TaskEnded(attempt.id, TaskSignal.SUCCEED, LATER, "w", exit_code=0)
        await stored(database, run, ended)
    who = (run.id, "tick", 1, attempt.id, EPOCH, 4711, 1)
    begun_ns = -(10**17)  # the history above has times of the past, before this machine's boot
    ended_ns = begun_ns + 10
    rows = [
        Row(Kind.START, *who, begun_ns, begun_ns),
        Row(Kind.END, *who, ended_ns, ended_ns),
    ]
    return rows, [Asked("key-1", "START", None, {command.id})]


@pytest.fixture(scope="module", params=DATABASES)
def template(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Honest]:
    """A database with one honest history, to be copied."""
    if request.param == SQLITE:
        url = f"sqlite:///{tmp_path_factory.mktemp('template') / 'shoal.db'}"
        rows, asked = asyncio.run(one_instance(url))
        yield Honest(url, rows, asked)
        return
    server: PostgresqlServer = request.getfixturevalue("postgresql_server")
    name = f"test_template_{uuid.uuid4().hex[:12]}"
    rows, asked = asyncio.run(one_instance(server.create(name)))
    yield Honest(name, rows, asked)
    server.drop(name)


@pytest.fixture
def honest(template: Honest, request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Honest]:
    """A separate copy for each test."""
    if is_sqlite(template.url):
        url = f"sqlite:///{tmp_path / 'shoal.db'}"
        shutil.copytree(
            Path(template.url.removeprefix("sqlite:///")).parent, tmp_path, dirs_exist_ok=True
        )
        yield Honest(url, template.rows, template.asked)
        return
    postgresql_server: PostgresqlServer = request.getfixturevalue("postgresql_server")
    name = f"test_{uuid.uuid4().hex[:12]}"
    url = postgresql_server.create(name, template.url)
    yield Honest(url, template.rows, template.asked)
    postgresql_server.drop(name)


def rules(verdict: Verdict) -> set[str]:
    return {offence.rule for offence in verdict.offences}


PLANTED: Sequence[tuple[str, str]] = [
    ("UPDATE task_instance SET state = 'FAILED'", "committed change of an attempt"),
    ("UPDATE task_instance SET state = 'FAILED'", "row and history"),
    ("UPDATE workflow_instance SET state = 'RUNNING'", "committed change of an instance"),
    ("UPDATE workflow_instance SET state = 'RUNNING'", "open instance"),
    ("UPDATE partition SET epoch = epoch - 1 WHERE number = 0", "epochs only rise"),
    ("UPDATE partition SET epoch = epoch - 1 WHERE number = 0", "epochs of runs"),
    ("UPDATE command SET state = 'PENDING'", "committed change of a command"),
    ("UPDATE command SET idempotency_key = 'another'", "acknowledged command"),
    ("UPDATE command SET result_instance_id = 99", "instance of a command"),
    ("DELETE FROM task_instance", "task without attempt"),
    ("""DELETE FROM event WHERE data LIKE '%"CLAIMED"%'""", "run without claim"),
    ("UPDATE task_instance SET exit_code = 3", "success without work"),
]


def test_honest_database_is_clean(honest: Honest) -> None:
    verdict = honest.check()
    assert list(verdict.offences) == []
    [(name, waited)] = [(n, s) for n, s in verdict.samples.items() if n.endswith("task QUEUED")]
    assert (name, list(waited)) == ("wait of default: task QUEUED", [0.0])
    # four of the attempt, two of the instance, one each of the command and the epoch
    assert verdict.counts["committed changes seen by triggers"] == 8
    assert verdict.counts["attempts SUCCEEDED"] == 1


@pytest.mark.parametrize(("statement", "rule"), PLANTED)
def test_what_is_planted_in_the_database_is_found(
    honest: Honest, statement: str, rule: str
) -> None:
    with connected(honest.url) as execute:
        execute(statement)
    verdict = honest.check()
    assert rule in rules(verdict)
    assert not verdict.is_clean


def test_runs_that_are_purged_meanwhile_are_left_out(honest: Honest) -> None:
    with connected(honest.url) as execute:
        execute(f"UPDATE project SET name = '{PASSING}'")
    verdict = honest.check(rows=[])
    assert verdict.counts["instances"] == verdict.counts["attempts"] == 0
    assert verdict.counts["commands in the database"] == verdict.counts["changes of state"] == 0


async def test_purge_that_takes_too_much_or_leaves_something_is_noticed(honest: Honest) -> None:
    history = History(None, honest.url, "marker", "key")
    [(number,)] = await fetch(honest.url, "SELECT id FROM workflow_instance")
    history.over = [number]
    assert (await history.gone(), await history.check()) == (0, "")
    with connected(honest.url) as execute:
        # As one that deletes an instance alone: the database would not let it.
        if not is_sqlite(honest.url):
            execute("SET session_replication_role = replica")
        execute("DELETE FROM workflow_instance")
    assert await history.gone() == 1
    assert "rows are left" in await history.check()
    history.open = [number]
    assert "although they were open" in await history.check()

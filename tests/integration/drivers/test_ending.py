"""What runs at a server ends: cancelled, terminated, settled, or before the next attempt begins."""

import dataclasses
import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

import psycopg
import pytest

from shoal.core.data_sources import DataSource
from shoal.worker.types.child.outcome import WorkFailed
from shoal.worker.types.sql.drivers import classify, settle
from shoal.worker.types.sql.drivers.failures import SqlFailed, StatementCancelled
from shoal.worker.types.sql.session import ErrorVerdict
from tests.integration.drivers.kit import Aside, Proxied, connected, rows, run, wait_until
from tests.integration.drivers.servers import PASSWORD, Served, free_port

# The figures are about a second. A busy machine may stand still for longer than that.
SOON_S = 30.0
KILLS = int(os.environ.get("SHOAL_TEST_KILLS", "12"))


@dataclass(frozen=True)
class Site:
    """One kind of server. ``busy`` counts the statements that it runs for tasks, ``live`` those of
    them that are endless.
    """

    served: Served
    endless: str
    busy: str
    live: str
    tables: str

    @property
    def source(self) -> DataSource:
        return self.served.source

    def is_busy(self) -> bool:
        return bool(self.served.asked(self.busy)[0][0])

    def connections(self) -> int:
        return int(self.served.asked(self.tables)[0][0])

    def undisguised(self) -> DataSource:
        """Return the data source without TLS, so that a proxy sees what is said."""
        return self.served.with_options(sslmode="disable", tls="disable")


POSTGRESQL = {
    "endless": (
        "SELECT count(*) FROM generate_series(1, 100000) a, generate_series(1, 100000) b, "
        "generate_series(1, 100000) c"
    ),
    "busy": "SELECT count(*) FROM pg_stat_activity WHERE usename = 'etl' AND state = 'active'",
    "live": (
        "SELECT count(*) FROM pg_stat_activity WHERE usename = 'etl' AND state = 'active' "
        "AND backend_type = 'client backend' AND query LIKE '%generate_series%'"
    ),
    "tables": "SELECT count(*) FROM pg_stat_activity WHERE usename = 'etl'",
}
MARIADB = {
    "endless": "SELECT sum(a.seq + b.seq) FROM seq_1_to_1000000 a, seq_1_to_1000000 b",
    # What a command says is not enough: "Connect" before there is a statement, "Killed" and "Busy"
    # when it has ended and the connection is being closed.
    "busy": (
        "SELECT count(*) FROM information_schema.processlist "
        "WHERE user = 'etl' AND info LIKE '%seq_1_to_%'"
    ),
    "live": (
        "SELECT count(*) FROM information_schema.processlist "
        "WHERE user = 'etl' AND info LIKE '%seq_1_to_1000000 b%'"
    ),
    "tables": "SELECT count(*) FROM information_schema.processlist WHERE user = 'etl'",
}


@pytest.fixture(params=["postgresql", "mariadb"])
def site(request: pytest.FixtureRequest) -> Site:
    served: Served = request.getfixturevalue(request.param)
    site = Site(served, **(POSTGRESQL if request.param == "postgresql" else MARIADB))
    wait_until(lambda: not site.connections())
    return site


@pytest.fixture
def tag() -> str:
    return f"shoal-{uuid.uuid4().hex[:8]}-7"


# The process of an attempt: it runs one statement after the other.
_CLIENT = """
import json, sys
from shoal.core.data_sources import DataSource
from shoal.worker.types.sql.drivers import connect
source, tag, attempt, statements = json.load(sys.stdin)
session = connect(DataSource(**source), tag=tag, attempt=attempt, log=print, read_only=False,
                  statement_timeout_s=None)
session.begin()
for statement in statements:
    print("running", flush=True)
    session.execute(statement).close()
"""


@contextmanager
def client(
    site: Site, tag: str, *statements: str, attempt: int = 1
) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [sys.executable, "-c", _CLIENT], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        assert process.stdin
        json.dump([dataclasses.asdict(site.source), tag, attempt, statements], process.stdin)
        process.stdin.close()
        yield process
    finally:
        process.kill()
        process.wait()
        assert process.stdout
        process.stdout.close()


def test_cancelled_statement_ends_at_the_server(site: Site, tag: str) -> None:
    session = connected(site.source, tag=tag)
    session.begin()
    endless = Aside(lambda: rows(session, site.endless))
    wait_until(site.is_busy)
    began = time.monotonic()
    session.cancel()
    wait_until(lambda: not site.is_busy())
    assert time.monotonic() - began < SOON_S
    assert isinstance(endless.join().error, StatementCancelled)
    with pytest.raises(StatementCancelled):
        session.execute("SELECT 1")
    with pytest.raises(StatementCancelled):
        session.commit()
    session.rollback()
    session.close()


def test_cancelled_before_it_begins(site: Site, tag: str) -> None:
    session = connected(site.source, tag=tag)
    session.cancel()
    with pytest.raises(StatementCancelled):
        session.execute(site.endless)
    session.close()
    assert not site.is_busy()


def test_cancelled_again_and_again_at_any_moment(site: Site, tag: str) -> None:
    for attempt in range(1, 16):
        session = connected(site.source, tag=tag, attempt=attempt)
        endless = Aside(lambda session=session: rows(session, site.endless))  # type: ignore[misc]
        time.sleep(attempt / 500)
        session.cancel()
        assert isinstance(endless.join().error, StatementCancelled)
        session.close()
    wait_until(lambda: not site.connections())


def test_cancelled_while_rows_are_read(site: Site, tag: str) -> None:
    session = connected(site.source, tag=tag)
    many = "generate_series(1, 100000000000)" if "generate" in site.endless else "seq"
    source = "" if "generate" in site.endless else " FROM seq_1_to_100000000000"
    found = iter(session.execute(f"SELECT {many}{source}"))
    next(found)
    session.cancel()
    with pytest.raises(SqlFailed):
        for _ in found:
            pass
    session.close()
    wait_until(lambda: not site.connections())


def test_terminated_connection_is_gone_from_the_server(site: Site, tag: str) -> None:
    session = connected(site.source, tag=tag)
    endless = Aside(lambda: rows(session, site.endless))
    wait_until(site.is_busy)
    session.terminate()
    assert not site.is_busy()
    assert classify(endless.join().error) is ErrorVerdict.RETRY  # type: ignore[arg-type]
    session.rollback()
    session.close()
    wait_until(lambda: not site.connections())


def test_terminate_ends_a_procedure_that_swallows_its_cancellation(
    postgresql: Served, tag: str
) -> None:
    site = Site(postgresql, **POSTGRESQL)
    session = connected(site.source, tag=tag)
    run(
        session,
        "CREATE OR REPLACE PROCEDURE swallow() LANGUAGE plpgsql AS $$BEGIN LOOP BEGIN "
        "PERFORM pg_sleep(1000); EXCEPTION WHEN query_canceled THEN NULL; END; END LOOP; END$$",
    )
    swallowing = Aside(lambda: run(session, "CALL swallow()"))
    wait_until(site.is_busy)
    session.cancel()
    assert site.is_busy()
    assert not swallowing.is_over
    session.terminate()
    assert not site.is_busy()
    error = swallowing.join().error
    assert isinstance(error, SqlFailed)
    assert error.code == "57P01"  # what the server said last, not that the connection is lost
    session.close()


def test_killed_client_leaves_nothing_at_postgresql(postgresql: Served, tag: str) -> None:
    site = Site(postgresql, **POSTGRESQL)
    with client(site, tag, site.endless) as process:
        wait_until(site.is_busy)
        process.kill()
        process.wait()
        began = time.monotonic()
        wait_until(lambda: not site.connections())
        assert time.monotonic() - began < SOON_S


def test_settling_ends_what_a_killed_client_has_left(site: Site, tag: str) -> None:
    with client(site, tag, site.endless) as process:
        wait_until(site.is_busy)
        process.kill()
        process.wait()
        settle(site.source, tag="another-tag", attempt=1)
        if site.source.kind == "mariadb":
            # MariaDB does not look whether its client is still there.
            wait_until(site.is_busy, SOON_S)
        settle(site.source, tag=tag, attempt=1)
        assert not site.is_busy()
    settle(site.source, tag=tag, attempt=1)  # when there is nothing
    wait_until(lambda: not site.connections())


def test_next_attempt_begins_when_the_one_before_has_ended(site: Site, tag: str) -> None:
    told: list[str] = []
    maker = connected(site.source, tag="maker")
    run(maker, "DROP TABLE IF EXISTS work", "CREATE TABLE work (i integer)")
    maker.close()
    inserting = "INSERT INTO work VALUES (1)"
    with client(site, tag, inserting, site.endless) as process:
        wait_until(site.is_busy)
        os.kill(process.pid, signal.SIGSTOP)  # alive, and nobody can ask it anything
        session = connected(site.source, tag=tag, attempt=2, log=told.append)
        assert not site.is_busy()
        assert rows(session, "SELECT * FROM work") == []
        run(session, "ALTER TABLE work ADD COLUMN j integer")  # it holds no lock any more
        assert len(told) == 1
        assert "earlier attempt" in told[0]
        session.close()


def test_killed_at_any_moment_there_are_never_two(site: Site, tag: str) -> None:
    chance = random.Random(13)
    busiest: list[int] = []
    is_over = threading.Event()

    def watch() -> None:
        while not is_over.wait(0.02):
            busiest.append(site.served.asked(site.live)[0][0])

    watching = Aside(watch)
    for attempt in range(1, KILLS + 1):
        # From before it connects to when the statement runs: a process takes most of a second.
        with client(site, tag, site.endless, attempt=attempt) as process:
            time.sleep(chance.uniform(0.2, 1.6))
            process.kill()
    settle(site.source, tag=tag, attempt=1)
    assert not site.is_busy()
    is_over.set()
    assert watching.join().error is None
    assert max(busiest) == 1


def test_of_two_sessions_with_one_tag_the_later_lives(site: Site, tag: str) -> None:
    first = connected(site.source, tag=tag, attempt=1)
    second = connected(site.source, tag=tag, attempt=2)
    for statement in ("SELECT 1", "CREATE TABLE never (i integer)"):
        with pytest.raises(SqlFailed) as failed:
            first.execute(statement)
        assert (
            classify(failed.value) is ErrorVerdict.RETRY
        )  # nothing was sent, so nothing is changed
    assert rows(second, "SELECT 1") == [(1,)]
    other = connected(site.source, tag=tag + "0", attempt=1)  # another task's
    assert rows(second, "SELECT 1") == [(1,)]
    for session in (first, second, other):
        session.close()


def test_many_connecting_at_once_are_never_there_together(site: Site, tag: str) -> None:
    connecting = [
        Aside(lambda number=number: connected(site.source, tag=tag, attempt=number))  # type: ignore[misc]
        for number in range(1, 7)
    ]
    sessions = [aside.value for aside in (one.join() for one in connecting) if aside.value]
    alive = 0
    for session in sessions:
        with suppress(SqlFailed):
            alive += rows(session, "SELECT 1") == [(1,)]
    assert alive == 1
    for session in sessions:
        session.close()


def test_earlier_attempt_does_not_end_a_later_one(postgresql: Served, tag: str) -> None:
    later = connected(postgresql.source, tag=tag, attempt=2)
    with pytest.raises(WorkFailed, match="attempt 2 of this task is at the database already"):
        connected(postgresql.source, tag=tag, attempt=1)
    assert rows(later, "SELECT 1") == [(1,)]
    later.close()


def test_a_lock_that_was_given_up_does_not_hide_an_attempt(postgresql: Served, tag: str) -> None:
    first = connected(postgresql.source, tag=tag, attempt=1)
    run(first, "DISCARD ALL")
    second = connected(postgresql.source, tag=tag, attempt=2)
    with pytest.raises(SqlFailed):
        first.execute("SELECT 1")
    second.close()
    first.close()


def test_what_may_not_be_ended_is_told(postgresql: Served, tag: str) -> None:
    source = postgresql.source
    address = f"host=127.0.0.1 port={source.port} dbname=warehouse user=stranger"
    stranger = psycopg.connect(address, password=PASSWORD, application_name=f"{tag}/1")
    for act in (
        lambda: connected(source, tag=tag, attempt=2),
        lambda: settle(source, tag=tag, attempt=1),
    ):
        with pytest.raises(WorkFailed, match="may not end what an earlier attempt") as failed:
            act()
        assert not failed.value.permanent
    stranger.close()


def test_settling_is_not_sure_without_the_server(site: Site, tag: str) -> None:
    with pytest.raises(WorkFailed, match="no server listens"):
        settle(dataclasses.replace(site.source, port=free_port()), tag=tag, attempt=1)


@pytest.mark.parametrize(
    ("statement", "in_transaction", "verdict"),
    [
        ("COMMIT", True, ErrorVerdict.AMBIGUOUS),
        ("INSERT INTO lost VALUES (1)", False, ErrorVerdict.AMBIGUOUS),
        ("INSERT INTO lost VALUES (1)", True, ErrorVerdict.RETRY),
        ("SELECT 1 FROM lost", False, ErrorVerdict.RETRY),
    ],
)
def test_connection_that_is_lost(
    site: Site, tag: str, statement: str, in_transaction: bool, verdict: ErrorVerdict
) -> None:
    maker = connected(site.source, tag="maker")
    run(maker, "DROP TABLE IF EXISTS lost", "CREATE TABLE lost (i integer)")
    maker.close()
    with Proxied(site.undisguised()) as proxied:
        session = connected(proxied.source, tag=tag)
        if in_transaction:
            session.begin()
        proxied.proxy.freeze_from = statement.encode()
        commits = statement == "COMMIT"
        losing = Aside(session.commit if commits else lambda: rows(session, statement))
        wait_until(lambda: proxied.is_frozen)
        proxied.cut()
        error = losing.join().error
        assert isinstance(error, SqlFailed)
        assert classify(error) is verdict
        assert ("Look there" in str(error)) is (verdict is ErrorVerdict.AMBIGUOUS)
        session.rollback()
        session.close()
    settle(site.source, tag=tag, attempt=1)

"""Triggers in the database that write down every change of a state or an epoch.

They see what is committed, whichever program wrote it and whatever it says about itself. One row
for each change, in the transaction of the change; rows about one thing are in order, since its row
was locked.
"""

import sqlite3
from contextlib import closing

import psycopg

from tests.chaos.cluster.queries import Select, is_sqlite, plain_url
from tests.chaos.judging.evidence import Step

_INSTALL = """
CREATE SCHEMA IF NOT EXISTS chaos;
CREATE TABLE IF NOT EXISTS chaos.step (
    id bigserial PRIMARY KEY,
    at timestamptz NOT NULL DEFAULT clock_timestamp(),
    of_table text NOT NULL,
    of_row bigint NOT NULL,
    before text NOT NULL,
    after text NOT NULL
);
CREATE OR REPLACE FUNCTION chaos.note_state() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO chaos.step (of_table, of_row, before, after)
    VALUES (TG_TABLE_NAME, NEW.id, OLD.state, NEW.state);
    RETURN NULL;
END $$;
CREATE OR REPLACE FUNCTION chaos.note_epoch() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO chaos.step (of_table, of_row, before, after)
    VALUES (TG_TABLE_NAME, NEW.number, OLD.epoch, NEW.epoch);
    RETURN NULL;
END $$;
CREATE OR REPLACE TRIGGER chaos_state AFTER UPDATE ON task_instance
    FOR EACH ROW WHEN (OLD.state <> NEW.state) EXECUTE FUNCTION chaos.note_state();
CREATE OR REPLACE TRIGGER chaos_state AFTER UPDATE ON workflow_instance
    FOR EACH ROW WHEN (OLD.state <> NEW.state) EXECUTE FUNCTION chaos.note_state();
CREATE OR REPLACE TRIGGER chaos_state AFTER UPDATE ON command
    FOR EACH ROW WHEN (OLD.state <> NEW.state) EXECUTE FUNCTION chaos.note_state();
CREATE OR REPLACE TRIGGER chaos_epoch AFTER UPDATE ON partition
    FOR EACH ROW WHEN (OLD.epoch <> NEW.epoch) EXECUTE FUNCTION chaos.note_epoch();
"""


_WATCHED = (
    ("task_instance", "id", "state"),
    ("workflow_instance", "id", "state"),
    ("command", "id", "state"),
    ("partition", "number", "epoch"),
)
_INSTALL_SQLITE = """
CREATE TABLE IF NOT EXISTS chaos_step (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    of_table TEXT NOT NULL,
    of_row INTEGER NOT NULL,
    before TEXT NOT NULL,
    after TEXT NOT NULL
);
""" + "".join(
    f"""CREATE TRIGGER IF NOT EXISTS chaos_{table} AFTER UPDATE ON {table}
    WHEN OLD.{column} <> NEW.{column} BEGIN
    INSERT INTO chaos_step (of_table, of_row, before, after)
    VALUES ('{table}', NEW.{row}, OLD.{column}, NEW.{column});
END;
"""
    for table, row, column in _WATCHED
)


def install(database_url: str) -> None:
    """Add the triggers to a migrated database."""
    if is_sqlite(database_url):
        path = database_url.removeprefix("sqlite:///")
        with closing(sqlite3.connect(path, timeout=20, isolation_level=None)) as file:
            file.executescript(_INSTALL_SQLITE)
        return
    with psycopg.connect(plain_url(database_url)) as connection:
        connection.execute(_INSTALL)


def read(database_url: str, select: Select) -> list[Step]:
    """Return the changes in order; none if the triggers were never installed."""
    if is_sqlite(database_url):
        steps = "chaos_step"
        there = select("SELECT name AS found FROM sqlite_master WHERE name = 'chaos_step'")
    else:
        steps, there = "chaos.step", select("SELECT to_regclass('chaos.step') AS found")
    if not there or there[0]["found"] is None:
        return []
    rows = select(f"SELECT of_table, of_row, before, after FROM {steps} ORDER BY id")
    return [Step(r["of_table"], r["of_row"], r["before"], r["after"]) for r in rows]

"""Triggers in the database that write down every change of a state or an epoch.

They see what is committed, whichever program wrote it and whatever it says about itself. One row
for each change, in the transaction of the change; rows about one thing are in order, since its row
was locked.
"""

from collections.abc import Mapping
from typing import Any

import psycopg

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


def install(database_url: str) -> None:
    """Add the triggers to a migrated database."""
    url = database_url.replace("postgresql+psycopg://", "postgresql://", 1)
    with psycopg.connect(url) as connection:
        connection.execute(_INSTALL)


def read(connection: psycopg.Connection[Mapping[str, Any]]) -> list[Step]:
    """Return the changes in order; none if the triggers were never installed."""
    found = connection.execute("SELECT to_regclass('chaos.step') AS found").fetchone()
    if found is None or found["found"] is None:
        return []
    rows = connection.execute("SELECT of_table, of_row, before, after FROM chaos.step ORDER BY id")
    return [Step(r["of_table"], r["of_row"], r["before"], r["after"]) for r in rows]

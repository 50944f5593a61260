"""Rows on their way to the jobs: grouped, packed, cut, read in stretches, superseded."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import given
from hypothesis import strategies as st

from shoal.insight.history.tables import ATTEMPTS
from shoal.insight.jobs.kernels.arrays import groups, is_one_of
from shoal.insight.jobs.rows.chunks import Chunk, ColumnSelection, cut, schema
from shoal.insight.jobs.rows.superseded_rows import Superseded, repeated
from shoal.insight.jobs.rows.transfer import joined, packed, unpacked

TEXTS = st.none() | st.sampled_from(["", "a", "b", "ü"])
ROWS = st.lists(st.tuples(TEXTS, TEXTS, st.integers(0, 3)), max_size=40)
NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


def table_of(rows: Sequence[tuple[str | None, str | None, int]]) -> pa.Table:
    one, other, number = ([row[at] for row in rows] for at in range(3))
    return pa.table(
        {
            "one": pa.array(one, pa.string()).dictionary_encode(),
            "other": pa.array(other, pa.string()),
            "number": pa.array(number, pa.int64()),
        }
    )


@given(ROWS)
def test_rows_of_a_group_have_equal_keys(
    rows: list[tuple[str | None, str | None, int]],
) -> None:
    first, group = groups(table_of(rows), ("one", "other", "number"))
    assert [rows[at] for at in first[group]] == rows
    assert len(first) == len(set(rows))
    assert [rows.index(row) for row in rows] == first[group].tolist()
    assert is_one_of(table_of(rows), "one", "a", "").tolist() == [
        row[0] in ("a", "") for row in rows
    ]


@given(ROWS, ROWS)
def test_what_is_packed_and_joined_is_as_it_was(
    rows: list[tuple[str | None, str | None, int]], others: list[tuple[str | None, str | None, int]]
) -> None:
    # A table without some columns has NULL there.
    narrow = table_of(others).select(["number"])
    whole = joined(unpacked(packed(one)) for one in (table_of(rows), narrow))
    assert whole.to_pylist() == [
        *table_of(rows).to_pylist(),
        *({"one": None, "other": None, "number": row[2]} for row in others),
    ]


@given(ROWS)
def test_each_place_gets_its_rows_in_order_and_not_the_texts_of_others(
    rows: list[tuple[str | None, str | None, int]],
) -> None:
    places = np.array([row[2] for row in rows], dtype=np.int64)
    found = {place: unpacked(packed(mine)) for place, mine in cut(table_of(rows), places, 4)}
    for place in range(4):
        mine = [row for row in rows if row[2] == place]
        if mine:
            assert [tuple(row.values()) for row in found[place].to_pylist()] == mine
            assert len(found[place]["one"].combine_chunks().dictionary) <= len(mine)
        else:
            assert place not in found


def test_stretches_that_began_too_late_are_not_read(tmp_path: Path) -> None:
    began = [NOON + timedelta(hours=hour) for hour in range(6)]
    rows = pa.table(
        {
            "attempt_id": range(6),
            "queued_at": pa.array([None, None, *began[2:]], pa.timestamp("us", tz="UTC")),
            "started_at": pa.array([*began[:5], None], pa.timestamp("us", tz="UTC")),
        }
    )
    pq.write_table(rows, tmp_path / "rows.parquet", row_group_size=2)

    def read(before: datetime | None) -> list[int]:
        micros = None if before is None else int(before.timestamp()) * 1_000_000
        selection = ColumnSelection(("attempt_id", "started_at"), micros)
        chunk = Chunk(0, ATTEMPTS.name, [str(tmp_path / "rows.parquet")], selection)
        table = chunk.read()
        assert table.schema.field("started_at").type == schema(ATTEMPTS).field("started_at").type
        found: list[int] = table["attempt_id"].to_pylist()
        return found

    assert read(None) == list(range(6))
    assert read(began[0]) == []
    assert read(began[1]) == [0, 1]
    assert read(began[2] + timedelta(seconds=1)) == [0, 1, 2, 3]
    assert read(began[5]) == list(range(6))


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(1, 9)), min_size=1, unique=True))
def test_of_each_key_the_row_with_the_highest_event_counts(rows: list[tuple[int, int]]) -> None:
    keys, events = (np.array([row[at] for row in rows]) for at in range(2))
    # Rows of one key may be in several chunks.
    pieces = [
        (0, ("attempts", at, packed(pa.table({"key": [key], "event_id": [event]}))))
        for at, (key, event) in enumerate(rows)
    ]
    tables = [unpacked(content) for _, content in repeated(pieces)]
    none = pa.table({"key": pa.array([], pa.int64()), "event_id": pa.array([], pa.int64())})
    counts = Superseded.of(joined([none, *tables])).counts(keys, events)
    newest = {key: max(event for of, event in rows if of == key) for key, _ in rows}
    assert counts.tolist() == [newest[key] == event for key, event in rows]

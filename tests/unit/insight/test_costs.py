"""What tasks used, by the labels of runs: a label that numbers runs makes no row for each run."""

from collections import Counter
from datetime import date
from pathlib import Path
from typing import Any

import pyarrow as pa

from shoal.insight.history.tables import ATTEMPTS, INSTANCES, HistoryTable
from shoal.insight.jobs.columns import start_us
from shoal.insight.jobs.days import Days
from shoal.insight.jobs.rollups import costs
from shoal.insight.jobs.rows.chunks import schema
from shoal.insight.jobs.rows.parts import RowsPart
from shoal.insight.jobs.rows.transfer import written

DAY = date(2026, 1, 31)
AT = start_us(DAY)


def part_of(folder: Path, labels: dict[str, list[dict[str, str]]]) -> RowsPart:
    """Return runs of one attempt of 1 s each, with these labels, by their workflow."""
    runs: list[dict[str, Any]] = []
    for workflow, each in labels.items():
        for one in each:
            number = len(runs) + 1
            common = {"project": "p", "workflow": workflow, "version": 1, "instance_id": number}
            runs.append({**common, "finished_at": AT + 10, "labels": list(one.items())})
    attempts = [
        {
            **{name: value for name, value in run.items() if name != "labels"},
            "task": "a",
            "worker": "w",
            "started_at": AT,
            "finished_at": AT + 1_000_000,
        }
        for run in runs
    ]
    part = RowsPart(folder, 0)
    tables: tuple[tuple[HistoryTable, list[dict[str, Any]]], ...] = (
        (INSTANCES, runs),
        (ATTEMPTS, attempts),
    )
    for table, rows in tables:
        found = schema(table)
        kept = pa.schema([field for field in found if field.name in rows[0]])
        written(pa.Table.from_pylist(rows, kept), part.file(table.name))
    return part


def test_values_of_a_label_are_one_where_there_are_too_many(tmp_path: Path) -> None:
    labels = {
        "many": [{"order": str(number), "team": f"t{number % 3}"} for number in range(9)],
        "few": [{"order": str(number)} for number in range(3)],
    }
    found = costs.costs(part_of(tmp_path, labels), Days(DAY, DAY), most_values=3)
    rows = {
        (row["workflow"], row["label"], row["value"]): (row["attempts"], row["slot_s"])
        for row in found.to_pylist()
    }
    assert len(rows) == found.num_rows, "each once"
    assert rows["many", "order", costs.OTHERS] == (9, 9.0)
    assert rows["many", "", ""] == (9, 9.0)
    assert rows["few", "order", "2"] == (1, 1.0)
    assert Counter(name for name, *_ in rows) == {"many": 1 + 1 + 3, "few": 1 + 3}

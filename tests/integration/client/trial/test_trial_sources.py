"""``shoal test`` of a task that uses data sources: they come from the environment."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from shoal.client.trial.execution import try_task
from shoal.client.trial.inputs import Given, NoDataSourceGiven, TaskInputs
from shoal.core.data_sources import DataSource
from shoal.core.data_sources.resolution import UnusableDataSource
from shoal.core.runs.run import WorkflowPlan
from shoal.core.task_types import Exit, TaskContext
from tests.support import source_task
from tests.unit.core.decide.driving import spec

NOW = datetime(2026, 11, 21, 6, tzinfo=UTC)
SOURCE = {"kind": "mariadb", "host": "db.${stage}", "user": "etl", "password": "correct horse"}


@pytest.fixture(autouse=True)
def task_type() -> Iterator[None]:
    with source_task.installed():
        yield


def inputs(**variables: str) -> TaskInputs:
    params = {"source": "wh", "note": "it is ${word}"}
    parameters = {"stage": "test", "word": "correct horse"}
    task = {"type": source_task.NAME, "params": params, "parameters": parameters}
    return TaskInputs(WorkflowPlan.of(spec({"a": task})), "a", NOW, Given({}, variables))


async def test_task_is_given_what_stands_in_the_environment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen: dict[str, DataSource] = {}

    async def run(_: object, context: TaskContext, __: object) -> Exit:
        seen.update(context.data_sources)
        return Exit(0)

    monkeypatch.setattr(source_task.Reads, "run", run)
    tried = inputs(SHOAL_DATA_SOURCE_wh=json.dumps(SOURCE))
    assert (await try_task(tried, lambda _: None)).exit_code == 0
    assert (seen["wh"].kind, seen["wh"].host) == ("mariadb", "db.test")
    assert seen["wh"].password == "correct horse"
    assert tried.rendered.params["note"] == "it is ***"


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (None, r"set SHOAL_DATA_SOURCE_wh to JSON such as"),
        ("no json", "that is not a JSON object"),
        ("[1]", "that is not a JSON object"),
        ({"kind": "sqlite", "oops": 1}, "oops: Extra inputs"),
        ({"kind": "sqlite", "database": "x.db"}, "absolute path"),
    ],
)
def test_what_is_missing_or_wrong_is_told(given: Any, words: str) -> None:
    variables = {} if given is None else {"SHOAL_DATA_SOURCE_wh": given}
    if isinstance(given, dict):
        variables = {"SHOAL_DATA_SOURCE_wh": json.dumps(given)}
    with pytest.raises((NoDataSourceGiven, UnusableDataSource), match=words):
        inputs(**variables)

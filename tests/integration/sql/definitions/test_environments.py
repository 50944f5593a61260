"""Environments: what is kept, who may name them, and that none goes while a workflow does."""

import asyncio
from typing import Any

import pytest
from sqlalchemy import text

from shoal.core.checks.workflow import InvalidDefinition
from shoal.core.definition.environments import EnvironmentSpec, StoredEnvironment
from shoal.core.definition.model import WorkflowSpec
from shoal.core.runs.events import Begun, TaskClaimed, TaskEnded, TaskStarted
from shoal.core.runs.states import TaskSignal
from shoal.sql import Database
from shoal.sql.errors import EnvironmentInUse, NotFound, UnreadableRow
from tests.integration.sql.given import LATER, NOW, created, definition, published, stored

FIELDS: dict[str, Any] = {
    "description": "for models",
    "variables": {"A": "1", "B": "ä '${x}'\n"},
    "python": "/opt/venvs/ml",
    "setup": "ulimit -v 1\n",
    "worker_groups": ["gpu", "default"],
}


def spec(**fields: Any) -> EnvironmentSpec:
    return EnvironmentSpec.model_validate(fields)


async def put(
    database: Database, name: str = "ml", **fields: Any
) -> tuple[StoredEnvironment, bool]:
    async with database.unit_of_work() as uow:
        done = await uow.environments.put(name, spec(**fields), LATER)
        await uow.commit()
    return done


async def delete(database: Database, name: str) -> None:
    async with database.unit_of_work() as uow:
        await uow.environments.delete(name)
        await uow.commit()


def naming(
    name: str = "flow",
    *,
    default: str | None = None,
    own: str | None = None,
    group: str = "default",
    **fields: Any,
) -> WorkflowSpec:
    """A workflow of two SHELL tasks, of which the second names ``own``."""
    made = definition(name, environment=default, **fields)
    first, second = (task.model_copy(update={"worker_group": group}) for task in made.tasks)
    return made.model_copy(
        update={"tasks": (first, second.model_copy(update={"environment": own}))}
    )


async def test_all_fields_are_kept_and_the_version_grows_with_each_change(
    database: Database,
) -> None:
    first, is_new = await put(database, **FIELDS)
    assert (is_new, first.name, first.spec, first.version) == (True, "ml", spec(**FIELDS), 1)
    again, is_new = await put(database, **FIELDS)
    assert (again, is_new) == (first, False)
    changed, _ = await put(database, setup="other")
    assert (changed.version, changed.spec) == (2, spec(setup="other"))
    await delete(database, "ml")
    for missing in (delete(database, "ml"), delete(database, "other")):
        with pytest.raises(NotFound, match="environment"):
            await missing


async def test_those_who_set_one_at_once_make_one(database: Database) -> None:
    done = await asyncio.gather(*(put(database, setup=f"# {n}") for n in range(4)))
    assert sorted(is_new for _, is_new in done) == [False, False, False, True]
    assert sorted(stored.version for stored, _ in done) == [1, 2, 3, 4]


async def test_they_are_listed_by_name(database: Database) -> None:
    for name in ("c", "a", "b"):
        await put(database, name)
    async with database.unit_of_work(read_only=True) as uow:
        assert [one.name for one in await uow.environments.list(limit=2)] == ["a", "b"]
        assert [one.name for one in await uow.environments.list(after="a")] == ["b", "c"]
        assert await uow.environments.names_for("p") == ["a", "b", "c"]


@pytest.mark.parametrize("fields", [{"default": "ml"}, {"own": "ml"}])
async def test_none_goes_while_the_newest_version_of_a_workflow_names_it(
    database: Database, fields: dict[str, str]
) -> None:
    await put(database)
    await put(database, "ml2")
    await published(database, naming("b", **fields))
    await published(database, naming("a", project="alpha", **fields))
    await published(database, naming("c", own="ml2"))
    with pytest.raises(EnvironmentInUse, match="alpha/a, demo/b; publish them") as refused:
        await delete(database, "ml")
    assert refused.value.workflows == ("alpha/a", "demo/b")
    await published(database, naming("b"))
    async with database.unit_of_work() as uow:
        await uow.lifecycle.delete("alpha", "a", LATER)
        await uow.commit()
    await delete(database, "ml")


async def test_text_that_only_looks_like_a_name_is_no_use(database: Database) -> None:
    await put(database)
    made = definition("a")
    params = {"script": '"environment":"ml"', "x": {"environment": "ml"}}
    task = made.tasks[0].model_copy(update={"params": params})
    await published(database, made.model_copy(update={"tasks": (task,)}))
    await delete(database, "ml")


@pytest.mark.parametrize(
    ("fields", "field", "words"),
    [
        ({"default": "mll"}, "environment", "no environment 'mll'; did you mean 'ml'?"),
        ({"own": "x"}, "tasks[1].environment", "make it with `shoal environment set x`"),
        (
            {"own": "only_gpu"},
            "tasks[1].environment",
            "'only_gpu' is for the worker groups gpu, the task is for 'default'",
        ),
    ],
)
async def test_definition_that_names_what_is_not_there_is_refused(
    database: Database, fields: dict[str, str], field: str, words: str
) -> None:
    await put(database)
    await put(database, "only_gpu", worker_groups=["gpu"])
    with pytest.raises(InvalidDefinition) as refused:
        await published(database, naming(**fields))
    [problem] = refused.value.problems
    assert problem.field == field
    assert words in problem.message


async def test_workflows_environment_has_to_fit_the_tasks_that_run_in_it(
    database: Database,
) -> None:
    await put(database, "only_gpu", worker_groups=["gpu"])
    with pytest.raises(InvalidDefinition) as refused:
        await published(database, naming(default="only_gpu", own="none"))
    [problem] = refused.value.problems
    assert problem.field == "tasks[0].worker_group"
    assert "the workflow's environment 'only_gpu' is for" in problem.message
    await published(database, naming(default="only_gpu", group="gpu"))


async def test_one_is_not_deleted_while_a_definition_that_names_it_is_stored(
    database: Database,
) -> None:
    await put(database)
    async with database.unit_of_work() as uow:
        await uow.workflows.publish(naming(default="ml"), NOW)
        deleting = asyncio.create_task(delete(database, "ml"))
        done, _ = await asyncio.wait([deleting], timeout=0.2)
        assert not done
        await uow.commit()
    with pytest.raises(EnvironmentInUse):
        await deleting


async def test_row_of_a_newer_version_is_told_of_and_left_out_of_lists(database: Database) -> None:
    await put(database, "a")
    await put(database, "b")
    async with database.unit_of_work() as uow:
        junk = text("UPDATE environment SET worker_groups = '[\"/\"]' WHERE name = 'a'")
        await uow.connection.execute(junk)
        await uow.commit()
    async with database.unit_of_work() as uow:
        assert [one.name for one in await uow.environments.list()] == ["b"]
        with pytest.raises(UnreadableRow, match="environment a"):
            await uow.environments.get("a")
        await uow.environments.delete("a")


async def test_attempt_keeps_the_environment_that_it_ran_in(database: Database) -> None:
    workflow_id = await published(database)
    [run] = await created(database, workflow_id, 1)
    await stored(database, run, Begun(NOW))
    first, second = (run.attempts[name].id or 0 for name in ("a", "b"))
    for number in (first, second):
        await stored(database, run, TaskClaimed(number, "w", NOW))
    await stored(database, run, TaskStarted(first, "w", NOW, environment="ml@3"))
    await stored(database, run, TaskEnded(first, TaskSignal.SUCCEED, NOW, "w"))
    ended = TaskEnded(second, TaskSignal.FAIL, NOW, "w", "no interpreter", environment="ml@4")
    await stored(database, run, ended)
    async with database.unit_of_work(read_only=True) as uow:
        tasks = await uow.tasks.of_instance(run.id)
        loaded = await uow.instances.run(run.id)
    assert [task.environment for task in tasks] == ["ml@3", "ml@4"]
    assert loaded.attempts["a"].environment == "ml@3"

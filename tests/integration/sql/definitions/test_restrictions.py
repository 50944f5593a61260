"""Restrictions of worker groups and environments to projects, as they are stored."""

import pytest
from sqlalchemy import text

from shoal.core.access.grants import Restricted
from shoal.core.checks.workflow import InvalidDefinition
from shoal.core.definition.environments import EnvironmentSpec
from shoal.core.definition.model import WorkflowSpec
from shoal.sql import Database
from shoal.sql.errors import NotFound
from tests.integration.sql.given import LATER, NOW, definition

GROUP, ENVIRONMENT = Restricted.WORKER_GROUP, Restricted.ENVIRONMENT


async def restrict(database: Database, kind: Restricted, name: str, *projects: str) -> bool:
    async with database.unit_of_work() as uow:
        _, is_new = await uow.restrictions.put(kind, name, projects, NOW)
        await uow.commit()
    return is_new


async def test_restriction_is_replaced_read_and_removed(database: Database) -> None:
    assert await restrict(database, GROUP, "gpu", "b", "a", "b")
    assert await restrict(database, ENVIRONMENT, "gpu")
    assert not await restrict(database, GROUP, "gpu", "c")
    async with database.unit_of_work() as uow:
        found = await uow.restrictions.get(GROUP, "gpu")
        assert (found.kind, found.name, found.projects) == (GROUP, "gpu", ("c",))
        listed = await uow.restrictions.list()
        assert [one.kind for one in listed] == [ENVIRONMENT, GROUP]
        rest = await uow.restrictions.list((listed[0].kind, listed[0].name), 1)
        assert rest == listed[1:]
        await uow.restrictions.remove(GROUP, "gpu")
        for gone in (uow.restrictions.remove, uow.restrictions.get, uow.restrictions.hold):
            with pytest.raises(NotFound):
                await gone(GROUP, "gpu")
        assert (await uow.restrictions.hold(ENVIRONMENT, "gpu")).projects == ()


async def test_what_is_not_restricted_is_open_and_the_kinds_do_not_meet(database: Database) -> None:
    await restrict(database, GROUP, "gpu", "a")
    await restrict(database, ENVIRONMENT, "lake", "b")
    async with database.unit_of_work(read_only=True) as uow:
        names = {"gpu", "lake", "other"}
        closed = uow.restrictions.closed
        assert await closed(GROUP, names, "a") == set()
        assert await closed(GROUP, names, "b") == {"gpu"}
        assert await closed(ENVIRONMENT, names, "a") == {"lake"}
        assert await uow.restrictions.all_of(GROUP) == {"gpu": {"a"}}


async def test_one_that_cannot_be_read_allows_nothing(database: Database) -> None:
    await restrict(database, GROUP, "gpu", "a")
    await restrict(database, ENVIRONMENT, "gpu", "a")
    async with database.unit_of_work() as uow:
        await uow.connection.execute(text("UPDATE restriction SET projects = 'junk'"), {})
        await uow.environments.put("gpu", EnvironmentSpec(), NOW)
        await uow.commit()
    async with database.unit_of_work(read_only=True) as uow:
        assert await uow.restrictions.closed(GROUP, {"gpu"}, "a") == {"gpu"}
        assert await uow.restrictions.all_of(GROUP) == {"gpu": frozenset()}
        assert await uow.restrictions.list() == []
        with pytest.raises(NotFound):
            await uow.environments.get_for("a", "gpu")


def running(group: str, *, project: str = "p", environment: str | None = None) -> WorkflowSpec:
    made = definition("flow", project=project, environment=environment)
    first, second = made.tasks
    choice = second.model_copy(update={"type": "DEPENDENT", "worker_group": "default"})
    return made.model_copy(
        update={"tasks": (first.model_copy(update={"worker_group": group}), choice)}
    )


async def test_definition_with_a_worker_group_of_others_is_refused_at_its_task(
    database: Database,
) -> None:
    await restrict(database, GROUP, "gpu", "ml")
    await restrict(database, GROUP, "default", "ml")  # tasks of the master need no worker
    async with database.unit_of_work() as uow:
        for spec, fields in (
            (running("gpu"), [("tasks", 0, "worker_group")]),
            (running("cpu"), []),
            (running("gpu", project="ml"), []),
        ):
            found = await uow.workflows.problems(spec)
            assert [one.path for one in found] == fields
        with pytest.raises(InvalidDefinition, match="restrict worker-group gpu --add p"):
            await uow.workflows.publish(running("gpu"), LATER)


async def test_environment_of_others_is_as_one_that_there_is_not(database: Database) -> None:
    await restrict(database, ENVIRONMENT, "lake", "ml")
    async with database.unit_of_work() as uow:
        await uow.environments.put("lak", EnvironmentSpec(), NOW)
        missing = await uow.workflows.problems(running("x", environment="lake"))
        await uow.environments.put("lake", EnvironmentSpec(), NOW)
        hidden = await uow.workflows.problems(running("x", environment="lake"))
        assert hidden == missing != []
        near = await uow.workflows.problems(running("x", environment="lakee"))
        assert "'lak'" in near[0].message  # and not the name that it may not know
        assert await uow.workflows.problems(running("x", environment="lake", project="ml")) == []
        assert (await uow.environments.get_for("ml", "lake")).name == "lake"
        with pytest.raises(NotFound, match="there is no environment lake"):
            await uow.environments.get_for("p", "lake")
        assert await uow.environments.names_for("p") == ["lak"]
        homes = {name: (await uow.projects.ensure(name, NOW)).id for name in ("p", "ml")}
        for visible, names in (
            (None, ["lak", "lake"]),
            ({homes["ml"], homes["p"]}, ["lak", "lake"]),
            ({homes["p"]}, ["lak"]),
            (set(), ["lak"]),
        ):
            listed = await uow.environments.list(visible=visible)
            assert [one.name for one in listed] == names
        with pytest.raises(NotFound):
            await uow.environments.get_visible("lake", {homes["p"]})
        assert (await uow.environments.get_visible("lake", {homes["ml"]})).name == "lake"

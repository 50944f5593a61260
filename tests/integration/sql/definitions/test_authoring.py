"""Drafts, names, archive and references, on each database."""

import asyncio
from dataclasses import replace

import pytest

from shoal.core.definition.layout import Layout
from shoal.core.definition.model import WorkflowSpec
from shoal.core.runs.filters import WorkflowFilter
from shoal.core.runs.records import WorkflowOrder, place_of
from shoal.sql import Database
from shoal.sql.errors import Archived, DraftChanged, NotFound, OpenInstances, WorkflowExists
from tests.integration.sql.given import LATER, NOW, created, definition, published


def naming(name: str, *named: tuple[str, str | None], project: str = "demo") -> WorkflowSpec:
    """A workflow whose tasks run others: names with their projects."""
    tasks = [
        {
            "name": f"t{number}",
            "type": "SUB_WORKFLOW",
            "params": {"workflow": one, **({"project": home} if home else {})},
        }
        for number, (one, home) in enumerate(named)
    ]
    return WorkflowSpec.model_validate({"project": project, "name": name, "tasks": tasks})


async def test_a_workflow_has_one_layout_which_goes_with_it(database: Database) -> None:
    await published(database)
    first = Layout({"fetch": (1.5, -2.0)}, {"g": ("fetch",)}, ("g",), NOW, "ada")
    second = replace(first, places={}, updated_at=LATER, updated_by="bob")
    async with database.unit_of_work() as uow:
        found = await uow.workflows.lock("demo", "flow")
        assert await uow.layouts.get(found.id) is None
        await uow.layouts.put(found.id, first)
        assert await uow.layouts.get(found.id) == first
        await uow.layouts.put(found.id, second)
        await uow.commit()
    async with database.unit_of_work() as uow:
        assert await uow.layouts.get(found.id) == second
        await uow.lifecycle.delete("demo", "flow", LATER)
        assert await uow.layouts.get(found.id) is None
        await uow.commit()


def test_a_layout_forgets_tasks_that_are_not_there() -> None:
    layout = Layout({"a": (0, 0), "b": (1, 1)}, {"g": ("a", "b"), "h": ("b",)}, ("h", "g"), NOW, "")
    left = layout.of_tasks({"a"})
    assert (left.places, left.groups, left.folded) == ({"a": (0, 0)}, {"g": ("a",)}, ("g",))
    assert Layout.of(left.content(), NOW, "") == left


async def test_a_draft_is_changed_only_as_it_was_found(database: Database) -> None:
    await published(database)
    async with database.unit_of_work() as uow:
        assert await uow.drafts.add("demo", "flow", "ada", "one", 1, NOW)
        assert not await uow.drafts.add("demo", "flow", "ada", "two", 1, NOW)
        assert await uow.drafts.add("demo", "flow", "bob", "three", 0, NOW)
        await uow.commit()
    async with database.unit_of_work(read_only=True) as uow:
        found = await uow.drafts.get("demo", "flow", "ada")
    assert (found.text, found.base_version, found.newest, found.revision) == ("one", 1, 1, 1)
    async with database.unit_of_work() as uow:
        await uow.drafts.change(found, "four", 1, LATER)
        with pytest.raises(DraftChanged):
            await uow.drafts.change(found, "five", 1, LATER)
        with pytest.raises(DraftChanged):
            await uow.drafts.delete(found)
        assert (await uow.drafts.get("demo", "flow", "ada", lock=True)).text == "four"
        first = await uow.drafts.list("demo", limit=1)
        assert [one.editor for one in first] == ["ada"]
        rest = await uow.drafts.list("demo", after=("flow", "ada"))
        assert [one.editor for one in rest] == ["bob"]
        assert await uow.drafts.count("demo", "flow") == 2


async def test_drafts_follow_a_workflow_to_its_new_name(database: Database) -> None:
    await published(database)
    async with database.unit_of_work() as uow:
        for editor in ("ada", "bob"):
            await uow.drafts.add("demo", "flow", editor, "old", 1, NOW)
        await uow.drafts.add("demo", "new", "bob", "own", 0, NOW)
        done = await uow.lifecycle.rename("demo", "flow", "new", LATER, "ada")
        assert (done.version.version, done.version.spec.name) == (2, "new")
        found = await uow.drafts.list("demo")
        assert [(one.name, one.editor) for one in found] == [
            ("flow", "bob"),  # who has one of that name keeps both
            ("new", "ada"),
            ("new", "bob"),
        ]


async def test_a_name_that_is_or_was_taken_is_not_given(database: Database) -> None:
    for name in ("flow", "other", "gone"):
        await published(database, definition(name))
    async with database.unit_of_work() as uow:
        await uow.lifecycle.delete("demo", "gone", NOW)
        for name in ("other", "gone", "flow"):
            with pytest.raises(WorkflowExists):
                await uow.lifecycle.rename("demo", "flow", name, LATER, "ada")
        with pytest.raises(NotFound):
            await uow.lifecycle.rename("demo", "gone", "new", LATER, "ada")


async def test_an_archived_workflow_has_no_fire_times_until_it_is_taken_out(
    database: Database,
) -> None:
    spec = definition(
        schedules=[{"cron": "0 0 6 * * ?"}, {"cron": "0 0 7 * * ?", "enabled": False}]
    )
    await published(database, spec)
    async with database.unit_of_work() as uow:
        before = await uow.schedules.of_workflow("demo", "flow")
        assert (await uow.lifecycle.archive("demo", "flow", LATER)).archived_at == LATER
        await uow.lifecycle.archive("demo", "flow", LATER)
        found = await uow.schedules.of_workflow("demo", "flow")
        assert [one.next_fire_at for one in found] == [None, None]
        [origin] = (await uow.workflows.origins([found[0].workflow_id])).values()
        assert (origin.is_archived, origin.name) == (True, "flow")
        for change in (spec, definition(description="x")):
            with pytest.raises(Archived):
                await uow.workflows.publish(change, LATER)
        with pytest.raises(Archived):
            await uow.lifecycle.rename("demo", "flow", "new", LATER, "ada")
        await uow.lifecycle.unarchive("demo", "flow", LATER)
        after = await uow.schedules.of_workflow("demo", "flow")
        assert after == [replace(one, expected_since=LATER) for one in before]
        await uow.lifecycle.archive("demo", "flow", LATER)
        await uow.lifecycle.delete("demo", "flow", LATER)
        again = await uow.workflows.publish(spec, LATER)
        assert again.created
        assert (await uow.workflows.get("demo", "flow")).archived_at is None


async def test_a_paused_schedule_stays_paused_whatever_is_published(database: Database) -> None:
    spec = definition(schedules=[{"cron": "0 0 6 * * ?"}])
    await published(database, spec)
    async with database.unit_of_work() as uow:
        [first] = await uow.schedules.of_workflow("demo", "flow")
        paused = await uow.schedules.pause(first.id, LATER)
        assert (paused.paused_at, paused.next_fire_at) == (LATER, None)
        changed = definition(schedules=[{"cron": "0 0 7 * * ?"}])
        await uow.workflows.publish(changed, LATER)
        [found] = await uow.schedules.of_workflow("demo", "flow")
        assert (found.id, found.cron, found.next_fire_at) == (first.id, "0 0 7 * * ?", None)
        await uow.lifecycle.archive("demo", "flow", LATER)
        await uow.lifecycle.unarchive("demo", "flow", LATER)
        assert (await uow.schedules.get(first.id)).next_fire_at is None
        await uow.lifecycle.archive("demo", "flow", LATER)
        assert (await uow.schedules.unpause(first.id, LATER)).next_fire_at is None
        await uow.lifecycle.unarchive("demo", "flow", LATER)
        found = await uow.schedules.get(first.id)
        assert found.next_fire_at is not None
        assert found.next_fire_at > LATER
        await uow.schedules.pause(first.id, LATER)
        again = await uow.schedules.unpause(first.id, LATER)
        assert (again.next_fire_at, again.paused_at) == (found.next_fire_at, None)
        with pytest.raises(NotFound):
            await uow.schedules.pause(9_999, LATER)


async def test_open_runs_hold_a_deletion_up_unless_asked(database: Database) -> None:
    workflow_id = await published(database)
    [run] = await created(database, workflow_id)
    async with database.unit_of_work() as uow:
        found = await uow.workflows.get("demo", "flow")
        hanging = await uow.lifecycle.hanging(found, None)
        assert (hanging.open_count, hanging.open_ids) == (1, (run.id,))
        with pytest.raises(OpenInstances):
            await uow.lifecycle.delete("demo", "flow", LATER)
        await uow.lifecycle.delete("demo", "flow", LATER, leaving_runs=True)
        with pytest.raises(NotFound):
            await uow.workflows.get("demo", "flow")


async def test_who_names_a_workflow_is_found_and_hidden_from_those_who_may_not_see(
    database: Database,
) -> None:
    await published(database, definition("flow", project="demo"))
    await published(database, naming("a", ("flow", None), ("flow", "demo"), ("other", None)))
    await published(database, naming("b", ("flow", "demo"), project="else"))
    await published(database, naming("c", ("flow", None), project="else"))  # that of its own
    await published(database, naming("own", ("own", "else")))
    async with database.unit_of_work(read_only=True) as uow:
        found = await uow.references.to("demo", "flow", None)
        assert [(one.workflow, one.named.task) for one in found.seen] == [
            ("a", "t0"),
            ("a", "t1"),
            ("b", "t0"),
        ]
        assert (found.workflows, found.hidden) == (("demo/a", "else/b"), 0)
        demo = (await uow.projects.get("demo")).id
        limited = await uow.references.to("demo", "flow", frozenset({demo}))
        assert (limited.workflows, limited.hidden) == (("demo/a",), 1)
    await published(database, naming("a", ("other", None)))
    async with database.unit_of_work(read_only=True) as uow:
        assert (await uow.references.to("demo", "flow", None)).workflows == ("else/b",)


async def test_labels_are_told_apart_to_the_letter(database: Database) -> None:
    for name, labels in (
        ("a", {"team": "x", "tier": "1"}),
        ("b", {"team": "X"}),
        ("c", {"note": '"team":"x"', "steam": "x"}),
        ("d", {"team": "naïve \\ %_"}),
    ):
        await published(database, definition(name, labels=labels))
    wanted = [
        (["team=x"], "a"),
        (["team"], "abd"),
        (["team=X"], "b"),
        (["team=x", "tier=1"], "a"),
        (["team=%"], ""),
        (["team=naïve \\ %_"], "d"),
        (['note="team":"x"'], "c"),
        (["eam"], ""),
    ]
    async with database.unit_of_work(read_only=True) as uow:
        for labels_wanted, names in wanted:
            found = await uow.workflow_list.page(WorkflowFilter(label=tuple(labels_wanted)))
            assert "".join(one.name for one in found) == names, labels_wanted
        newest = await uow.workflow_list.page(order=WorkflowOrder.CHANGED, limit=1)
        rest = await uow.workflow_list.page(
            order=WorkflowOrder.CHANGED, after=place_of(newest[0], WorkflowOrder.CHANGED)
        )
        assert "".join(one.name for one in [*newest, *rest]) == "dcba"


async def test_one_of_two_new_drafts_at_once_is_kept(database: Database) -> None:
    await published(database)

    async def add(words: str) -> bool:
        async with database.unit_of_work() as uow:
            is_new = await uow.drafts.add("demo", "flow", "ada", words, 1, NOW)
            await uow.commit()
        return is_new

    assert sorted(await asyncio.gather(add("one"), add("two"))) == [False, True]

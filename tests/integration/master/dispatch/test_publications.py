"""Files that attempts hand over: versions with the success of the attempt, or none at all."""

import hashlib
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import pytest
from sqlalchemy import text

from shoal.core.definition.selection import Selection
from shoal.core.runs.commands import CommandType
from shoal.core.runs.states import TaskState, WorkflowState
from shoal.proto import shoal_pb2 as pb
from shoal.sql.errors import NotFound
from tests.integration.master.conftest import Bench

AGAIN = Selection(("a",))
ONE = {"out/a.csv": "reports/a.csv"}
V = pb.ReportVerdict


def file(path: str, content: str = "one", size: int | None = None) -> pb.PublishedFile:
    digest = hashlib.sha256(content.encode()).hexdigest()
    return pb.PublishedFile(path=path, sha256=digest, size=len(content) if size is None else size)


async def versions(bench: Bench, path: str = "reports/a.csv") -> list[int]:
    async with bench.database.unit_of_work(read_only=True) as uow:
        found = await uow.resources.versions("default", path)
    return sorted(one.version for one in found)


async def noted(bench: Bench) -> int:
    async with bench.database.unit_of_work(read_only=True) as uow:
        found = await uow.connection.execute(text("SELECT count(*) FROM resource"))
        return int(found.scalar_one())


async def publish(bench: Bench, publish: Mapping[str, str] = ONE, **task: Any) -> int:
    return await bench.publish({"a": {"publish": dict(publish), **task}})


async def test_payload_names_the_files_and_their_uploads_are_noted_once(bench: Bench) -> None:
    workflow = await publish(
        bench, {"out/$[yyyy].csv": "${to}/a.csv", "b": "b"}, parameters={"to": "reports"}
    )
    async with bench.master():
        instance = await bench.start(workflow)
        worker = await bench.worker("w")
        (claim,) = await worker.claim(1)
        (first,) = await worker.fetch([claim])
        (again,) = await worker.fetch([claim])
    made = first.payload
    year = f"{instance.logical_time:%Y}"
    assert [(one.file, one.path) for one in made.publish] == [
        ("b", "b"),
        (f"out/{year}.csv", "reports/a.csv"),
    ]
    assert len({one.object for one in made.publish}) == 2
    assert made.largest_publication == 1024 << 20
    assert again.payload.publish == made.publish
    assert await noted(bench) == 2
    assert await versions(bench) == []


async def test_success_makes_a_version_and_repeating_the_report_makes_no_other(
    bench: Bench,
) -> None:
    workflow = await publish(bench)
    async with bench.master():
        instance = await bench.start(workflow)
        worker = await bench.worker("w")
        (claim,) = await worker.claim(1)
        (verdict,) = await worker.fetch([claim])
        for content in ("one", "another"):
            said = await worker.report(
                claim, pb.SUCCEEDED, published=[file("reports/a.csv", content)]
            )
            assert said == V.COMMITTED
        assert await bench.ended(instance.id) is WorkflowState.SUCCEEDED
    async with bench.database.unit_of_work(read_only=True) as uow:
        (stored,) = await uow.resources.versions("default", "reports/a.csv")
    assert (stored.version, stored.size) == (1, 3)
    assert stored.object == verdict.payload.publish[0].object
    assert stored.instance_id == instance.id


async def test_nothing_of_an_attempt_that_fails_or_is_not_the_workers_own_can_be_seen(
    bench: Bench,
) -> None:
    workflow = await publish(bench, retries=1)
    async with bench.master():
        instance = await bench.start(workflow)
        worker, other = await bench.worker("w"), await bench.worker("x")
        (claim,) = await worker.claim(1)
        await worker.fetch([claim])
        mine = [file("reports/a.csv")]
        assert await other.report(claim, pb.SUCCEEDED, published=mine) == V.SUPERSEDED
        await worker.report(claim, pb.FAILED, 1, published=mine)
        assert await versions(bench) == []
        (second,) = await worker.claim(1)
        (verdict,) = await worker.fetch([second])
        # Late, of the attempt before.
        assert await worker.report(claim, pb.SUCCEEDED, published=mine) == V.SUPERSEDED
        assert await versions(bench) == []
        await worker.report(second, pb.SUCCEEDED, published=mine)
        assert await bench.ended(instance.id) is WorkflowState.SUCCEEDED
    async with bench.database.unit_of_work(read_only=True) as uow:
        (stored,) = await uow.resources.versions("default", "reports/a.csv")
    assert stored.object == verdict.payload.publish[0].object


async def test_content_of_the_newest_version_makes_no_new_one(bench: Bench) -> None:
    workflow = await publish(bench)
    async with bench.master():
        worker = await bench.worker("w")
        for content, expected in (("one", 1), ("one", 1), ("two", 2)):
            instance = await bench.start(workflow, key=f"{content}{expected}{await noted(bench)}")
            (claim,) = await worker.claim(1)
            await worker.fetch([claim])
            await worker.report(claim, pb.SUCCEEDED, published=[file("reports/a.csv", content)])
            assert await bench.ended(instance.id) is WorkflowState.SUCCEEDED
            assert (await versions(bench))[-1] == expected


@pytest.mark.parametrize(
    ("published", "words"),
    [
        ([], "the worker has not handed its files over"),
        ([file("reports/b.csv")], "the worker has not handed its files over"),
        ([file("reports/a.csv", size=2 << 30)], "has too many bytes"),
    ],
)
async def test_report_without_the_files_is_a_failure(
    bench: Bench, published: list[pb.PublishedFile], words: str
) -> None:
    workflow = await publish(bench)
    async with bench.master():
        instance = await bench.start(workflow)
        worker = await bench.worker("w")
        (claim,) = await worker.claim(1)
        await worker.fetch([claim])
        assert await worker.report(claim, pb.SUCCEEDED, published=published) == V.COMMITTED
        assert await bench.ended(instance.id) is WorkflowState.FAILED
    (task,) = await bench.tasks(instance.id)
    assert words in (task.reason or "")
    assert await versions(bench) == []


async def test_path_that_is_a_folder_fails_its_task_and_no_other_of_the_batch(
    bench: Bench,
) -> None:
    workflow = await bench.publish(
        {"a": {"publish": ONE, "retries": 2}, "b": {"publish": {"x": "reports"}, "retries": 2}}
    )
    async with bench.master():
        instance = await bench.start(workflow)
        worker = await bench.worker("w")
        claims = await worker.claim(2)
        made = [(await worker.fetch([one]))[0].payload for one in claims]
        files = {"a": file("reports/a.csv"), "b": file("reports")}
        for claim, payload in zip(claims, made, strict=True):
            await worker.report(claim, pb.SUCCEEDED, published=[files[payload.task]])
        assert await bench.ended(instance.id) is WorkflowState.FAILED
    tasks = {one.task: one for one in await bench.tasks(instance.id)}
    assert sorted(one.state for one in tasks.values()) == [TaskState.FAILED, TaskState.SUCCEEDED]
    (failed,) = [one for one in tasks.values() if one.state is TaskState.FAILED]
    assert "a path is a file or a folder" in (failed.reason or "")  # whichever came second
    assert len(await bench.tasks(instance.id)) == 2  # no retry
    stored = len(await versions(bench)) + len(await versions(bench, "reports"))
    assert stored == 1


async def test_project_without_room_fails_the_task(bench: Bench) -> None:
    workflow = await publish(bench, {"a": "a", "b": "b"})
    cluster = bench.cluster.model_copy(update={"resource_mb": 1, "resource_project_mb": 1})
    async with bench.master(cluster):
        instance = await bench.start(workflow)
        worker = await bench.worker("w")
        (claim,) = await worker.claim(1)
        await worker.fetch([claim])
        both = [file("a", "a", 1 << 20), file("b", "b", 1)]
        await worker.report(claim, pb.SUCCEEDED, published=both)
        assert await bench.ended(instance.id) is WorkflowState.FAILED
    (task,) = await bench.tasks(instance.id)
    assert "raise resource_project_mb" in (task.reason or "")
    assert await versions(bench, "a") == []


async def test_tasks_behind_it_get_what_their_own_run_has_made_and_other_runs_do_not(
    bench: Bench,
) -> None:
    workflow = await bench.publish(
        {
            "a": {"publish": ONE},
            "b": {"depends_on": ["a"], "resources": ["reports/", "reports/a.csv"]},
        }
    )
    other = await bench.publish(
        {"c": {"resources": ["reports/a.csv"], "delay": 0.0}, "d": {}}, name="other"
    )
    async with bench.master():
        worker = await bench.worker("w")
        before = await bench.start(other, key="before")
        instance = await bench.start(workflow, key="run")
        seen = {}
        for _ in range(4):
            for claim in await worker.claim(1):
                (verdict,) = await worker.fetch([claim])
                if not verdict.HasField("payload"):
                    continue
                made = verdict.payload
                seen[made.task] = [(one.path, one.version) for one in made.resources]
                files = [file(one.path) for one in made.publish]
                await worker.report(claim, pb.SUCCEEDED, published=files)
        assert await bench.ended(instance.id) is WorkflowState.SUCCEEDED
        assert await bench.ended(before.id) is WorkflowState.FAILED
    assert seen["b"] == [("reports/a.csv", 1)]
    assert "c" not in seen


async def test_run_that_goes_on_by_itself_keeps_what_it_has_made(bench: Bench) -> None:
    workflow = await bench.publish(
        {"a": {"publish": ONE}, "b": {"depends_on": ["a"], "resources": ["reports/a.csv"]}}
    )
    async with bench.master():
        worker = await bench.worker("w")
        instance = await bench.start(workflow)
        (claim,) = await worker.claim(1)
        await worker.fetch([claim])
        await worker.report(claim, pb.SUCCEEDED, published=[file("reports/a.csv")])
        (claim,) = await worker.claim(1)
        async with bench.database.unit_of_work() as uow:
            await uow.resources.delete("default", "reports/a.csv", datetime.now(UTC))
            await uow.commit()
        (verdict,) = await worker.fetch([claim])
        assert [one.version for one in verdict.payload.resources] == [1]
        await worker.report(claim, pb.FAILED, 1)
        assert await bench.ended(instance.id) is WorkflowState.FAILED


async def test_name_that_renders_to_no_path_fails_without_a_process(bench: Bench) -> None:
    workflow = await publish(bench, {"a": "${to}"}, parameters={"to": "../a"}, retries=3)
    async with bench.master():
        instance = await bench.start(workflow)
        worker = await bench.worker("w")
        (verdict,) = await worker.fetch(await worker.claim(1))
        assert not verdict.HasField("payload")
        assert await bench.ended(instance.id) is WorkflowState.FAILED
    (task,) = await bench.tasks(instance.id)
    assert "publish[a]: '../a' is not a path within a project" in (task.reason or "")


async def test_task_that_runs_again_publishes_again(bench: Bench) -> None:
    workflow = await publish(bench)
    async with bench.master():
        worker = await bench.worker("w")
        instance = await bench.start(workflow)
        for content in ("one", "two"):
            (claim,) = await worker.claim(1)
            await worker.fetch([claim])
            await worker.report(claim, pb.SUCCEEDED, published=[file("reports/a.csv", content)])
            assert await bench.ended(instance.id) is WorkflowState.SUCCEEDED
            if content == "one":
                await bench.command(
                    CommandType.RERUN_TASKS, workflow, "again", instance, selection=AGAIN
                )
    assert await versions(bench) == [1, 2]
    async with bench.database.unit_of_work(read_only=True) as uow:
        with pytest.raises(NotFound):
            await uow.resources.get("default", "reports/a.csv", 3)

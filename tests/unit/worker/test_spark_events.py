"""How far a Spark application is, from the events of its driver."""

import json
import re
from pathlib import Path
from typing import Any

from shoal.worker.types.spark.event_log import Application, EventLog
from shoal.worker.types.spark.kind import SparkParams

APP = {"Event": "SparkListenerApplicationStart", "App Name": "x", "App ID": "local-7"}


def stage(number: int, tasks: int, **fields: Any) -> dict[str, Any]:
    name = f"count at job.py:{number}"
    return {"Stage ID": number, "Stage Name": name, "Number of Tasks": tasks, **fields}


def job(number: int, *stages: dict[str, Any]) -> dict[str, Any]:
    return {"Event": "SparkListenerJobStart", "Job ID": number, "Stage Infos": list(stages)}


def of_stage(event: str, info: dict[str, Any]) -> dict[str, Any]:
    return {"Event": f"SparkListenerStage{event}", "Stage Info": info}


def task_end(number: int, reason: str = "Success") -> dict[str, Any]:
    ended = {"Reason": reason}
    return {"Event": "SparkListenerTaskEnd", "Stage ID": number, "Task End Reason": ended}


def write(file: Path, *events: Any, end: str = "\n") -> None:
    file.parent.mkdir(exist_ok=True)
    with file.open("a") as out:
        for event in events:
            out.write(json.dumps(event, separators=(",", ":")) + end)


def test_tasks_of_started_jobs_are_counted(tmp_path: Path) -> None:
    file = tmp_path / "eventlog_v2_local-7" / "events_1_local-7"
    application = Application()
    log = EventLog(tmp_path, application)
    assert not log.read()
    write(file, {"Event": "SparkListenerLogStart"}, APP, job(0, stage(0, 4), stage(1, 2)))
    assert log.read()
    assert (application.id, application.done, application.tasks) == ("local-7", 0, 6)
    assert application.label == ""
    write(file, of_stage("Submitted", stage(0, 4)), task_end(0), task_end(0, "ExceptionFailure"))
    log.read()
    assert (application.done, application.tasks) == (1, 6)
    assert application.label == "stage 0: count at job.py:0"
    write(file, *[task_end(0)] * 3, of_stage("Completed", stage(0, 4)))
    write(file, {"Event": "SparkListenerJobEnd", "Job ID": 0})
    log.read()
    assert (application.done, application.tasks) == (4, 4)  # stage 1 will never run
    assert not log.read()


def test_stage_that_is_run_again_is_counted_again(tmp_path: Path) -> None:
    application = Application()
    for event in (
        job(0, stage(0, 3)),
        of_stage("Submitted", stage(0, 3)),
        *[task_end(0)] * 3,
        of_stage("Completed", stage(0, 3)),
        of_stage("Submitted", stage(0, 2)),
        task_end(0),
    ):
        application.apply(event)
    assert (application.done, application.tasks) == (1, 2)
    application.apply(of_stage("Completed", stage(0, 2, **{"Failure Reason": "lost"})))
    assert application.tasks == 0


def test_half_lines_junk_and_later_files(tmp_path: Path) -> None:
    folder = tmp_path / "eventlog_v2_local-7"
    first, second = folder / "events_1_local-7", folder / "events_2_local-7"
    application = Application()
    log = EventLog(tmp_path, application)
    write(first, APP, job(0, stage(0, 5)))
    with first.open("ab") as out:
        out.write(
            b'{"Event":"SparkListenerTaskEnd"}\nnot json\n{"Event":"SparkListenerTaskEnd","St'
        )
    log.read()
    assert (application.done, application.tasks) == (0, 5)
    with first.open("ab") as out:
        out.write(b'age ID":0,"Task End Reason":{"Reason":"Success"}}\n')
    log.read()
    assert application.done == 1
    write(first, task_end(0))
    write(second, task_end(0))
    log.read()
    assert application.done == 3
    assert not first.exists()  # read, and not needed any more
    assert second.exists()


def test_page_names_every_field_with_its_default() -> None:
    page = Path(__file__).parents[3] / "docs" / "tasks" / "spark.md"
    text = page.read_text(encoding="utf-8").split("## Fields")[1].split("\n## ")[0]
    rows = dict(re.findall(r"^\| `(\w+)` \| ([^|]*) \|", text, re.MULTILINE))
    defaults = {
        name: field.get_default(call_default_factory=True)
        for name, field in SparkParams.model_fields.items()
    }
    assert rows == {n: f"`{value}`" if value else "–" for n, value in defaults.items()}

"""The program: its errors, what a kill leaves, and a real cluster of Spark's."""

import hashlib
import json
import os
import signal
import subprocess
import sys
import time
from datetime import timedelta
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from bench.support.processes import below
from shoal.insight.serving import marks
from tests.integration.insight.expected import Expected
from tests.integration.insight.histories import CLUSTER, FIRST, Generator, History
from tests.integration.insight.program import DAYS, LAST, ended, started
from tests.integration.insight.results import assert_same, stored
from tests.support.spark.standalone import standalone_spark


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("history") / CLUSTER
    Generator(History(root), 7, runs=60).write()
    return root


@pytest.fixture(scope="module")
def expected(history: Path) -> Expected:
    return Expected(history, FIRST, LAST)


def step_of(process: subprocess.Popen[str]) -> str:
    """Wait for the next step that is done; return its name."""
    assert process.stdout is not None
    line = process.stdout.readline()
    assert line, process.communicate()
    name: str = json.loads(line)["job"]
    return name


def java_of(process: subprocess.Popen[str]) -> int:
    """Return the process id of Spark's Java, of a program that has done a step."""
    [java] = [one.pid for one in below(process.pid) if one.name == "java"]
    return java


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--days", "yesterday"], "'yesterday' is not a day such as 2026-01-31"),
        (["--days", "2026-02-31"], "day is out of range"),
        (["--days", "2026-03-02:2026-03-01"], "the last day is before the first"),
        (["--days", "2026-03-02:9999-03-01"], "9999-03-01 has not begun, today is 2"),
        (["--only", "task_days,weather"], "--only weather: no such job; there are baseline_errors"),
        (["--history", "/nowhere"], "no history in /nowhere: there is no manifest/*.json"),
    ],
)
def test_bad_request_says_what_to_do(
    history: Path, tmp_path: Path, options: list[str], says: str
) -> None:
    code, steps, err = ended(started(history, tmp_path / "out", *options))
    assert (code, steps) == (1, [])
    assert says in err
    assert len(err.splitlines()) == 1


def test_python_without_pyspark_says_what_to_install(history: Path, tmp_path: Path) -> None:
    hidden = """
import importlib.util, runpy
find_spec = importlib.util.find_spec
importlib.util.find_spec = lambda name: None if name == "pyspark" else find_spec(name)
runpy.run_module("shoal.insight.jobs", run_name="__main__", alter_sys=True)
"""
    argv = [sys.executable, "-c", hidden, "--history", str(history), "--days", DAYS]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    expected = f"the jobs need PySpark: {sys.executable} -m pip install 'shoal[insight]'\n"
    assert done.stderr == expected
    assert not (history / "rollups").exists()


def test_the_folder_above_will_do_where_there_is_one_history(history: Path, tmp_path: Path) -> None:
    code, steps, err = ended(started(history.parent, tmp_path / "out", "--only", "task_days"))
    assert (code, [step["job"] for step in steps]) == (0, ["prepare", "task_days"]), err
    (history.parent / ("1" * 32)).mkdir()
    code, _, err = ended(started(history.parent, tmp_path / "out", "--only", "task_days"))
    assert (code, "name the folder or URL that `shoal insight status` shows" in err) == (1, True)


def test_manifest_that_does_not_follow_and_missing_file_are_named(tmp_path: Path) -> None:
    root = tmp_path / CLUSTER
    Generator(History(root), 1, runs=5).write()
    first, *_ = sorted((root / "manifest").iterdir())
    text = first.read_text()
    first.unlink()
    _, _, err = ended(started(root, tmp_path / "out", "--only", "task_days"))
    assert f"{root}/manifest lacks the manifest 1" in err
    first.write_text(text)
    file = next((root / "attempts").rglob("*.parquet"))
    file.unlink()
    _, _, err = ended(started(root, tmp_path / "out", "--only", "task_days"))
    assert f"history damaged at {file}: a manifest names it, but it is not there" in err


def test_killed_java_leaves_whole_results_and_the_next_run_all_of_them(
    history: Path, expected: Expected, tmp_path: Path
) -> None:
    out, jobs = tmp_path / "out", ["task_days", "critical_paths", "workflow_days"]
    served = {"task_days", "workflow_days"}
    process = started(history, out, "--only", ",".join(jobs))
    assert [step_of(process), step_of(process)] == ["prepare", "task_days"]
    os.kill(java_of(process), signal.SIGKILL)
    code, _, err = ended(process)
    assert code == 1
    assert "Spark failed at critical_paths" in err.splitlines()[-1]
    assert_same(stored(out, "task_days"), expected.task_days())
    assert sorted(path.name for path in out.iterdir()) == ["task_days"]
    code, steps, err = ended(started(history, out, "--only", ",".join(jobs), "--format", "parquet"))
    assert code == 0, err
    assert [step["job"] for step in steps] == ["prepare", *jobs]
    for job in jobs:
        assert_same(stored(out, job), getattr(expected, job)())
    [mark] = (out / "finished").iterdir()
    told = marks.read(mark.read_bytes())
    assert {(one.job, one.day) for one in told} == {
        (job, FIRST + timedelta(days=number)) for job in served for number in range(7)
    }
    for one in told:
        file = out / one.job / f"day={one.day}" / "rows.parquet"
        assert hashlib.sha256(file.read_bytes()).hexdigest() == one.sha256
        assert pq.read_metadata(file).num_rows == one.rows


def test_killed_program_ends_java_and_what_it_left_goes_with_the_next_run(
    history: Path, expected: Expected, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    process = started(history, out, "--only", "task_days,costs")
    assert step_of(process) == "prepare"
    java = java_of(process)
    process.kill()
    process.communicate()
    deadline = time.monotonic() + 60
    while Path(f"/proc/{java}").exists():
        assert time.monotonic() < deadline
        time.sleep(0.2)
    assert [path for path in out.iterdir() if path.name.startswith(".staging-")]
    assert not list(out.glob("*/day=*/.*"))
    code, _, err = ended(started(history, out, "--only", "task_days,costs"))
    assert code == 0, err
    assert sorted(path.name for path in out.iterdir()) == ["costs", "finished", "task_days"]
    assert_same(stored(out, "costs"), expected.costs())


def test_results_are_beside_the_history_that_the_settings_name(tmp_path: Path) -> None:
    root = tmp_path / "history" / CLUSTER
    Generator(History(root), 1, runs=5).write()
    argv = [sys.executable, "-m", "shoal.insight.jobs", "--days", DAYS, "--only", "task_days"]
    environment = {**os.environ, "SHOAL_DATA": str(tmp_path / "data")}
    done = subprocess.run(argv, env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, "give --history the folder" in done.stderr) == (1, True)
    environment["SHOAL_HISTORY_URL"] = str(tmp_path / "history")
    done = subprocess.run(argv, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert_same(stored(root / "rollups", "task_days"), Expected(root, FIRST, LAST).task_days())


def test_real_cluster_gives_the_same_results(
    history: Path, expected: Expected, tmp_path: Path
) -> None:
    with standalone_spark(tmp_path) as spark:
        options = ["--master", spark.url, "--only", "task_days,worker_days,critical_paths"]
        code, _, err = ended(started(history, tmp_path / "out", *options))
    assert code == 0, err
    for job in ("task_days", "worker_days", "critical_paths"):
        assert_same(stored(tmp_path / "out", job), getattr(expected, job)())


def test_lines_of_json_have_the_same_rows(
    history: Path, expected: Expected, tmp_path: Path
) -> None:
    options = ["--format", "jsonl", "--only", "task_days", "--master", "local[2]"]
    code, _, err = ended(started(history, tmp_path / "out", *options))
    assert code == 0, err
    found = []
    for day in (FIRST + timedelta(days=number) for number in range(7)):
        lines = (tmp_path / "out" / "task_days" / f"day={day}" / "rows.jsonl").read_text()
        found += [{"day": day, **json.loads(line)} for line in lines.splitlines()]
    assert_same(found, expected.task_days())

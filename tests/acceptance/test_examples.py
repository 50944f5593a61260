"""The examples that people learn from, as their pages say to run them."""

import json
import os
import re
import shutil
import sqlite3
import subprocess
import sys
import sysconfig
import tarfile
import threading
import venv
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from shoal.client.local.cluster import LocalCluster
from shoal.client.local.zookeeper import free_port
from tests.acceptance.rest import Rest
from tests.support.waiting import DEADLINE_S

EXAMPLES = Path(__file__).parents[2] / "examples"

pytestmark = pytest.mark.timeout(600)


class Shoal:
    """The ``shoal`` program, and Python, for one cluster, beside a copy of the examples."""

    def __init__(self, cluster: LocalCluster, folder: Path) -> None:
        self._environment = {**os.environ, "SHOAL_DATA": str(cluster.data), "NO_COLOR": "1"}
        self.folder = folder
        shutil.copytree(EXAMPLES, folder / "examples", ignore=shutil.ignore_patterns("output"))

    def __call__(self, *arguments: str) -> str:
        """Run a command line to its good end; return what it has printed."""
        return self.python("-m", "shoal.client.cli", *arguments)

    def python(self, *arguments: str) -> str:
        done = subprocess.run(
            [sys.executable, *arguments],
            cwd=self.folder,
            env=self._environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=4 * DEADLINE_S,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout


@pytest.fixture
def shoal(cluster: LocalCluster, tmp_path: Path) -> Shoal:
    return Shoal(cluster, tmp_path)


def newest(rest: Rest, workflow: str) -> int:
    found = rest.get("/instances", project="examples", workflow=workflow)["items"]
    return int(found[0]["id"])


def test_airports_of_a_day_are_measured_side_by_side_and_compared(shoal: Shoal, rest: Rest) -> None:
    shoal("apply", "examples/airports.py")
    shoal("run", "airports", "--project", "examples", "-p", "date=2013-03-08", "--wait")
    tasks = rest.tasks(newest(rest, "airports"))
    log = rest.log(tasks["compare"]["id"])
    assert "Departures from New York on 2013-03-08" in log
    flights = dict(re.findall(r"^(\w{3}) +(\d+) flights left", log, re.MULTILINE))
    assert set(flights) == {"EWR", "JFK", "LGA"}
    assert sum(map(int, flights.values())) > 500
    outputs = rest.get(f"/task-instances/{tasks['compare']['id']}")["outputs"]
    assert outputs["worst"] in flights
    assert float(outputs["minutes"]) > 0


def test_a_day_without_flights_says_so_and_starts_no_part(shoal: Shoal, rest: Rest) -> None:
    shoal("apply", "examples/airports.py")
    shoal("run", "airports", "--project", "examples", "-p", "date=2014-02-08")
    instance = rest.wait_for(newest(rest, "airports"))
    assert instance["state"] == "FAILED"
    tasks = {task["task"]: task for task in instance["tasks"]}
    assert "no flights on 2014-02-08" in rest.log(tasks["find"]["id"])
    assert tasks["each"]["state"] == "SKIPPED"


def test_a_chain_runs_in_its_order_whichever_run_is_started_first(shoal: Shoal, rest: Rest) -> None:
    shoal("apply", "examples/chain")
    for workflow in ("shop_report", "stock", "orders"):
        at = ("--logical-time", "2026-03-02T02:00")
        shoal("run", workflow, "--project", "examples", *at)
    runs = {name: newest(rest, name) for name in ("orders", "stock", "shop_report")}
    ended = {name: rest.wait_for(instance) for name, instance in runs.items()}
    assert {one["state"] for one in ended.values()} == {"SUCCEEDED"}
    assert ended["orders"]["finished_at"] < ended["stock"]["finished_at"]
    assert ended["stock"]["finished_at"] < ended["shop_report"]["finished_at"]
    report = rest.tasks(runs["shop_report"])["report"]
    said = re.search(
        r"On 2026-03-02 most sold: (cod|hake|sole), (\d+) boxes", rest.log(report["id"])
    )
    assert said
    stock = shoal.folder / "examples/chain/output/2026-03-02/stock.csv"
    sold = dict(line.split(",") for line in stock.read_text().split())
    assert sold[said[1]] == said[2] == max(sold.values(), key=int)


def test_the_notebook_runs_from_the_first_cell_to_the_last(shoal: Shoal) -> None:
    printed = shoal.python("examples/notebook.py")
    assert re.search(
        r"^2013-02-08  run \d+ SUCCEEDED  \w{3} [\d.]+ minutes$", printed, re.MULTILINE
    )
    assert re.search(r"The worst airport was \d+ minutes late on average", printed)


@pytest.fixture
def served_data() -> Iterator[str]:
    """The URL of a server that has the examples' data."""

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its name
            pass

    handler = partial(Quiet, directory=str(EXAMPLES / "data"))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def test_the_nightly_pipeline_replaces_its_own_day(
    spark_classes: None, served_data: str, tmp_path: Path
) -> None:
    data = tmp_path / "cluster"
    data.mkdir()
    (data / "shoal.toml").write_text('[worker]\nhttp_allow = "127.0.0.0/8"\n')
    database = tmp_path / "warehouse.db"
    with LocalCluster(data, slots=4, api_port=free_port()) as cluster:
        shoal, rest = Shoal(cluster, tmp_path), Rest(cluster.url, cluster.token)
        source = ("warehouse", "--project", "examples", "--kind", "sqlite")
        shoal("data-source", "set", *source, "--database", str(database))
        shoal("apply", "examples/nightly")
        for _ in range(2):
            shoal("run", "nightly", "--project", "examples", "-p", f"url={served_data}", "--wait")
        tasks = rest.tasks(newest(rest, "nightly"))
        rows = json.loads(rest.get(f"/task-instances/{tasks['report']['id']}")["outputs"]["rows"])
        rest.close()
    assert {"Delta Air Lines Inc.", "JetBlue Airways"} <= {row["airline"] for row in rows}
    assert [row["minutes"] for row in rows] == sorted((r["minutes"] for r in rows), reverse=True)
    with closing(sqlite3.connect(database)) as connection:
        assert connection.execute("SELECT count(*) FROM delays").fetchone() == (len(rows),)


@pytest.fixture
def environment(tmp_path: Path) -> Path:
    """The Python of a new virtual environment that has everything this one has."""
    folder = tmp_path / "venv"
    venv.create(folder, symlinks=True)
    python = folder / "bin" / "python"
    ours = f"import site; site.addsitedir({sysconfig.get_path('purelib')!r})\n"
    [packages] = folder.glob("lib/python*/site-packages")
    (packages / "ours.pth").write_text(ours)
    return python


def test_a_task_type_of_a_package_is_found_checked_and_run(
    environment: Path, tmp_path: Path
) -> None:
    shutil.copytree(EXAMPLES, tmp_path / "examples")
    pip = [str(environment), "-m", "pip", "install", "--quiet", "--no-deps", "--no-index"]
    pip += ["--disable-pip-version-check", "--no-build-isolation", "./examples/task_type"]
    subprocess.run(pip, cwd=tmp_path, check=True)
    page = (EXAMPLES / "task_type" / "README.md").read_text()
    definition = tmp_path / "pack.yaml"
    definition.write_text(page.split("```yaml\n")[1].split("```")[0])
    folder = tmp_path / "folder"
    (folder / "below").mkdir(parents=True)
    (folder / "below" / "a.txt").write_text("a")

    def tried(folder: Path) -> tuple[int, str]:
        """Run the example's task; return the exit code, and what was printed."""
        file = ("--file", "pack.yaml", "-p", f"folder={folder}")
        done = subprocess.run(
            [environment, "-m", "shoal.client.cli", "test", "pack", *file],
            cwd=tmp_path,
            env={**os.environ, "NO_COLOR": "1"},
            capture_output=True,
            text=True,
            timeout=DEADLINE_S,
        )
        return done.returncode, done.stdout + done.stderr

    code, printed = tried(folder)
    assert code == 0, printed
    found = re.search(r"packed 1 files of \S+ into (\S+)", printed)
    assert found
    with tarfile.open(found[1]) as archive:
        assert archive.getnames() == ["below/a.txt"]
    Path(found[1]).unlink()
    code, printed = tried(folder / "nowhere")
    assert code == 1
    assert f"there is no folder {folder}/nowhere on this worker" in printed
    text = definition.read_text()
    definition.write_text(text.replace("      file: ", "      level: 10\n      file: "))
    code, printed = tried(folder)
    assert code == 2
    assert "pack.yaml:11: tasks[0].params.level: input should be less than" in printed


def test_rain_is_looked_at_on_the_worker_s_own_spark_connect_server(
    shoal: Shoal, rest: Rest
) -> None:
    shoal("data-source", "set", "lake", "--kind", "spark", "--project", "examples")
    shoal("data-source", "test", "lake", "--project", "examples")
    shoal("apply", "examples/weather.py")
    shoal("run", "weather", "--project", "examples", "-p", "month=3", "--wait")
    tasks = rest.tasks(newest(rest, "weather"))
    log = rest.log(tasks["report"]["id"])
    assert re.search(r"^Departures were [\d.]+ minutes late in rain, [\d.]+ without", log, re.M)
    assert len(re.findall(r"^\w\w  -?[\d.]+ minutes, \d+ flights$", log, re.M)) == 3

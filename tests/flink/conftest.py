"""A real Flink session cluster on the loopback, and the jar of a program that it runs."""

import os
import subprocess
import time
import zipfile
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest

from shoal.client.local.zookeeper import free_port
from shoal.core.data_sources import DataSource
from shoal.worker.types.flink.names import attempt_of_jar, attempt_of_job
from tests.integration.drivers.kit import wait_until
from tests.support.waiting import START_S

HERE = Path(__file__).parent
FLINK = HERE / "libraries" / "pyflink"
_OPENED = ("lang", "net", "io", "nio", "lang.reflect", "text", "time", "util", "util.concurrent")
_OPENS = [f"--add-opens=java.base/java.{name}=ALL-UNNAMED" for name in _OPENED]
_CONFIG = """\
jobmanager.rpc.address: 127.0.0.1
jobmanager.rpc.port: {rpc}
jobmanager.bind-host: 127.0.0.1
taskmanager.host: 127.0.0.1
taskmanager.bind-host: 127.0.0.1
taskmanager.numberOfTaskSlots: 8
taskmanager.memory.process.size: 1200m
taskmanager.memory.managed.size: 64m
rest.address: 127.0.0.1
rest.bind-address: 127.0.0.1
rest.port: {rest}
restart-strategy.type: none
web.upload.dir: {folder}/upload
io.tmp.dirs: {folder}/tmp
blob.storage.directory: {folder}/blobs
"""
_LOG4J = """\
rootLogger.level = INFO
rootLogger.appenderRef.console.ref = console
appender.console.type = Console
appender.console.name = console
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %d %p %c{1} %m%n
"""
LIVE_STATES_OVER = {"FINISHED", "FAILED", "CANCELED"}


@dataclass
class Flink:
    """A running cluster. ``tags`` are those of the tasks that have run in it."""

    source: DataSource
    folder: Path
    processes: list[subprocess.Popen[bytes]]
    tags: list[str] = field(default_factory=list)

    def ask(self, path: str, method: str = "GET", **more: Any) -> Any:
        answer = httpx.request(
            method, f"http://127.0.0.1:{self.source.port}{path}", trust_env=False, **more
        )
        return answer.json()

    def jobs(self, tag: str) -> dict[int, str]:
        """Return the states of a task's jobs by their attempts."""
        found = {attempt_of_job(tag, one["id"]): one["status"] for one in self.ask("/jobs")["jobs"]}
        return {attempt: status for attempt, status in found.items() if attempt is not None}

    def live(self, tag: str) -> list[int]:
        """Return the attempts of a task that have a live job."""
        return [one for one, status in self.jobs(tag).items() if status not in LIVE_STATES_OVER]

    def jars(self, tag: str) -> list[str]:
        """Return the task's jars that are still there."""
        names = [one["name"] for one in self.ask("/jars")["files"]]
        return [name for name in names if attempt_of_jar(tag, name) is not None]

    def new_tag(self, name: str) -> str:
        """Return a tag for a task whose jobs must all have ended at the end of all tests."""
        self.tags.append(f"shoal-{name}-{len(self.tags)}")
        return self.tags[-1]


@pytest.fixture(scope="session")
def flink(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Flink]:
    folder = tmp_path_factory.mktemp("flink")
    conf = folder / "conf"
    conf.mkdir()
    rest = free_port()
    text = _CONFIG.format(rpc=free_port(), rest=rest, folder=folder)
    (conf / "config.yaml").write_text(text)
    (conf / "log4j.properties").write_text(_LOG4J)
    jvm, settings = _task_manager(conf)
    with ExitStack() as stack:
        processes = [
            stack.enter_context(_started(folder, "jobmanager", ["-Xmx512m"], [])),
            stack.enter_context(_started(folder, "taskmanager", jvm, settings)),
        ]
        for process in processes:
            stack.callback(process.kill)  # before their blocks wait for them
        source = DataSource("farm", "flink", host="127.0.0.1", port=rest)
        flink = Flink(source, folder, processes)
        wait_until(lambda: _has_slots(flink), START_S)
        yield flink
        # Also what would have come later: a job that nobody looked for any more.
        assert {tag: flink.live(tag) for tag in flink.tags if flink.live(tag)} == {}
        assert {tag: flink.jars(tag) for tag in flink.tags if flink.jars(tag)} == {}


def _has_slots(flink: Flink) -> bool:
    for process in flink.processes:
        assert process.poll() is None, f"Flink does not start: see {flink.folder}"
    with suppress(httpx.HTTPError, ValueError):
        return bool(flink.ask("/overview").get("slots-available"))
    return False


_MAINS = {
    "jobmanager": "org.apache.flink.runtime.entrypoint.StandaloneSessionClusterEntrypoint",
    "taskmanager": "org.apache.flink.runtime.taskexecutor.TaskManagerRunner",
}


def _started(
    folder: Path, role: str, jvm: list[str], settings: list[str]
) -> subprocess.Popen[bytes]:
    argv = [java(), *jvm, *_OPENS, f"-Dlog4j.configurationFile={folder}/conf/log4j.properties"]
    argv += ["-cp", f"{FLINK}/lib/*", _MAINS[role], "--configDir", str(folder / "conf"), *settings]
    with (folder / f"{role}.log").open("wb") as log:
        return subprocess.Popen(argv, stdout=log, stderr=log, cwd=folder)


def _task_manager(conf: Path) -> tuple[list[str], list[str]]:
    """Return the options of a task manager's JVM, and its settings, as Flink computes them."""
    path = f"{FLINK}/bin/bash-java-utils.jar:{FLINK}/lib/*"
    main = "org.apache.flink.runtime.util.bash.BashJavaUtils"
    argv = [java(), "-cp", path, main, "GET_TM_RESOURCE_PARAMS", "--configDir", str(conf)]
    done = subprocess.run(argv, capture_output=True, text=True, check=True)
    mark = "BASH_JAVA_UTILS_EXEC_RESULT:"
    said = (done.stdout + done.stderr).splitlines()
    jvm, settings = (line.partition(mark)[2].split() for line in said if mark in line)
    return jvm, settings


def java(program: str = "java") -> str:
    home = os.environ.get("JAVA_HOME")
    return f"{home}/bin/{program}" if home else program


@pytest.fixture(scope="session")
def jar(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the jar of ``Jobs.java``, in a folder whose name holds a blank."""
    folder = tmp_path_factory.mktemp("a job")
    [dist] = (FLINK / "lib").glob("flink-dist-*.jar")
    javac = [java("javac"), "--release", "17", "-cp", str(dist), "-d", str(folder)]
    subprocess.run([*javac, str(HERE / "Jobs.java")], check=True)
    path = folder / "jobs.jar"
    with zipfile.ZipFile(path, "w") as archive:
        for compiled in folder.glob("*.class"):
            archive.write(compiled, compiled.name)
    return path


class Live:
    """Looks at a task's jobs again and again, and keeps the most that were live at once."""

    def __init__(self, flink: Flink, tag: str) -> None:
        self._flink, self._tag = flink, tag
        self.most = 0

    def look(self) -> list[int]:
        live = self._flink.live(self._tag)
        self.most = max(self.most, len(live))
        return live

    def look_for(self, seconds: float) -> None:
        """Look for as long, and at least once."""
        until = time.monotonic() + seconds
        while True:
            self.look()
            if time.monotonic() > until:
                return

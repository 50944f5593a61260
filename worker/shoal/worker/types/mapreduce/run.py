"""The work of an MR task: Hadoop's ``RunJar``, watched while it runs."""

import re
import subprocess
import threading
import zipfile
from pathlib import Path

from shoal.worker.types.child.outcome import WorkFailed
from shoal.worker.types.child.work import Work
from shoal.worker.types.hadoop import yarn
from shoal.worker.types.hadoop.client import JOB_LOG, Hadoop, remove_scratch, require_plain
from shoal.worker.types.mapreduce.job_log import JobLog
from shoal.worker.types.mapreduce.kind import MapReduceParams
from shoal.worker.types.program import CannotRun, placeholders_left
from shoal.worker.types.spark.command import find_spark, require_java

LOOK_S = 0.5  # between two looks at what the client says
_RUN_JAR = "org.apache.hadoop.util.RunJar"
_SHELL = "org.apache.hadoop.fs.FsShell"


def run(work: Work[MapReduceParams]) -> None:
    """Run the program to its end; its exit code is the task's."""
    params = work.params
    try:
        _require_usable(params)
        hadoop = _hadoop(work)
    except WorkFailed:
        work.settled()  # nothing is begun
        raise
    if not hadoop.uses_yarn:
        work.settled()  # the job runs in this process tree, and dies with it
    elif work.attempt > 1:
        yarn.end(hadoop, work.tag)
    if params.overwrite:
        _delete(work, hadoop, params.overwrite)
    argv = hadoop.argv(_RUN_JAR, params.jar, *_main_class(params), *params.arguments)
    work.require_wanted()
    process = subprocess.Popen(argv, stdin=subprocess.DEVNULL)
    work.on_cancel(process.terminate)
    watcher = _JobWatcher(work)
    watcher.start()
    code = process.wait()
    job = watcher.finish()
    remove_scratch(work.folder)
    if code < 0:
        raise WorkFailed(f"Hadoop's client was ended by signal {-code}", exit_code=128 - code)
    if code:
        raise WorkFailed(job.failure, exit_code=code)  # else the log says why
    if job.id:
        work.output(job_id=job.id, counters=job.counters)
    work.settled()


def settle(work: Work[MapReduceParams]) -> None:
    """End the jobs that an attempt has left in the cluster. Raises WorkFailed."""
    hadoop = _hadoop(work)
    if hadoop.uses_yarn:
        yarn.end(hadoop, work.tag)


def _hadoop(work: Work[MapReduceParams]) -> Hadoop:
    params = work.params
    settings = {**params.conf, "mapreduce.job.tags": work.tag}
    if params.queue:
        settings["mapreduce.job.queuename"] = params.queue
    if params.files:
        settings["tmpfiles"] = ",".join(map(_uri, params.files))
    if params.jars:
        settings["tmpjars"] = ",".join(map(_uri, params.jars))
    try:
        require_java()
        hadoop = Hadoop(find_spark(), work.folder, settings, params.jars)
        if not hadoop.uses_yarn:
            require_plain(work.folder)
        return hadoop
    except CannotRun as error:
        raise WorkFailed(str(error)) from error


def _main_class(params: MapReduceParams) -> list[str]:
    """Return the arguments of RunJar. It takes the manifest's class, if there is one, without
    a word about another. Raises WorkFailed."""
    try:
        with zipfile.ZipFile(params.jar) as jar:
            manifest = jar.read("META-INF/MANIFEST.MF").decode("utf-8", "replace")
    except KeyError:
        manifest = ""
    except (OSError, zipfile.BadZipFile) as error:
        raise WorkFailed(f"{params.jar} is not a jar: {error}", permanent=True) from error
    found = re.search(r"^Main-Class:\s*(\S+)", manifest.replace("\r\n ", ""), re.MULTILINE)
    named = found[1] if found else ""
    if named and params.main_class not in ("", named):
        text = f"the jar's manifest names the class {named}, and Hadoop runs that: leave out"
        raise WorkFailed(f"{text} main_class, or take a jar without one", permanent=True)
    if not named and not params.main_class:
        text = "the jar's manifest names no class: say in main_class which one to run"
        raise WorkFailed(text, permanent=True)
    return [] if named else [params.main_class]


def _uri(path: str) -> str:
    return path if "://" in path else Path(path).absolute().as_uri()


def _require_usable(params: MapReduceParams) -> None:
    texts = [params.jar, params.main_class, params.queue, params.overwrite or ""]
    if left := placeholders_left([*texts, *params.files, *params.jars, *params.conf.values()]):
        text = f"no parameter of the workflow fills the placeholder in {left[0]!r}"
        raise WorkFailed(text, permanent=True)
    for file in (params.jar, *params.files, *params.jars):
        if "://" not in file and not Path(file).is_file():
            raise WorkFailed(f"there is no file {file} on this worker", permanent=True)


def _delete(work: Work[MapReduceParams], hadoop: Hadoop, path: str) -> None:
    work.log(f"shoal: deleting {path}")
    work.require_wanted()
    process = subprocess.Popen(
        hadoop.argv(_SHELL, "-rm", "-r", "-f", "-skipTrash", path), stdin=subprocess.DEVNULL
    )
    work.on_cancel(process.terminate)
    if code := process.wait():
        raise WorkFailed(f"{path} could not be deleted", exit_code=max(1, code))


class _JobWatcher(threading.Thread):
    """Tells how far the newest job is."""

    def __init__(self, work: Work[MapReduceParams]) -> None:
        super().__init__(name="jobs", daemon=True)
        self._work, self._job = work, JobLog()
        self._file = work.folder / JOB_LOG
        self._at = 0
        self._rest = ""
        self._over = threading.Event()

    def run(self) -> None:
        """See Thread."""
        while not self._over.wait(LOOK_S):
            self._read()

    def finish(self) -> JobLog:
        """Read the rest, and return what is known."""
        self._over.set()
        self.join()
        self._read()
        return self._job

    def _read(self) -> None:
        try:
            with self._file.open(encoding="utf-8", errors="replace") as file:
                file.seek(self._at)
                text = self._rest + file.read()
                self._at = file.tell()
        except FileNotFoundError:
            return
        *lines, self._rest = text.split("\n")
        for line in lines:
            self._job.read(line)
        if self._job.id and lines:
            self._work.progress(self._job.done, 100, "%", self._job.id)

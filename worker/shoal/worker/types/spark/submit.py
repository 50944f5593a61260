"""The work of a SPARK task: ``spark-submit``, watched while it runs."""

import os
import subprocess
import threading
import time
from pathlib import Path

from shoal.worker.types.child.outcome import WorkFailed
from shoal.worker.types.child.work import Work
from shoal.worker.types.hadoop import yarn
from shoal.worker.types.hadoop.client import Hadoop
from shoal.worker.types.program import CannotRun, write_program
from shoal.worker.types.spark.class_archive import SETTING, use_options
from shoal.worker.types.spark.command import (
    environment,
    event_log_conf,
    find_spark,
    has_own_event_log,
    is_in_pod,
    options,
    pod_conf,
    pod_namespace,
    require_java,
    require_rendered,
    yarn_conf,
)
from shoal.worker.types.spark.event_log import Application, EventLog
from shoal.worker.types.spark.kind import SparkParams

_END_S = 15.0  # within what a settling process has
LOOK_S = 0.5  # between two looks at the events


def submit(work: Work[SparkParams]) -> None:
    """Run the application to its end; its exit code is the task's."""
    params = work.params
    try:
        require_rendered(params)
        spark_home = find_spark()
        require_java()
    except CannotRun as error:
        work.settled()  # nothing is begun
        raise WorkFailed(str(error)) from error
    is_yarn = params.master == "yarn"
    if not is_yarn and params.deploy_mode == "client":
        work.settled()  # what runs elsewhere are executors, which end with their driver
    elif work.attempt > 1 and (is_yarn or _can_end_pods(work)):
        settle(work)
    events = _events_folder(work, spark_home)
    conf = yarn_conf(work.tag) if is_yarn else {}
    if is_in_pod(params):
        conf = pod_conf(work.tag, pod_namespace(params, spark_home))
    if events is not None:
        conf |= event_log_conf(events)
    argv = [
        str(spark_home / "bin" / "spark-submit"),
        *options(params, params.name or f"shoal-{work.task_instance_id}", conf),
        _application(work),
        *params.arguments,
    ]
    java = use_options(work.settings.get(SETTING, ""), spark_home, work.folder)
    env = {**os.environ, **environment(work.folder, spark_home, params, java)}
    work.require_wanted()
    process = subprocess.Popen(argv, env=env, stdin=subprocess.DEVNULL)
    work.on_cancel(process.terminate)
    if events is not None:
        _SubmitWatcher(work, events).start()
    code = process.wait()
    if code < 0:
        raise WorkFailed(f"spark-submit was ended by signal {-code}", exit_code=128 - code)
    if code:
        if not is_yarn and not _can_end_pods(work) and not work.is_cancelled:
            work.settled()  # it has waited for the driver's end
        raise WorkFailed("", exit_code=code)  # the log says why
    work.settled()


def settle(work: Work[SparkParams]) -> None:
    """End the application that an attempt has left in the cluster. Raises WorkFailed."""
    if work.params.master != "yarn":
        _end_driver(work)
        return
    try:
        require_java()
        hadoop = Hadoop(find_spark(), work.folder)
    except CannotRun as error:
        raise WorkFailed(str(error)) from error
    yarn.end(hadoop, work.tag)


def _can_end_pods(work: Work[SparkParams]) -> bool:
    return is_in_pod(work.params) and bool(work.settings.get("kubernetes_config"))


def _end_driver(work: Work[SparkParams]) -> None:
    """End the driver of the task in Kubernetes, and its executors. Raises WorkFailed."""
    if not _can_end_pods(work):
        raise WorkFailed(
            "this worker cannot end a driver in Kubernetes, as its administrator has not set "
            "kubernetes_config: see whether one of this task's still runs, and delete its pod"
        )
    # Here, as the library takes a second to import.
    from shoal.worker.types.kubernetes.client import KubernetesCluster
    from shoal.worker.types.kubernetes.removal import end_pods

    cluster = KubernetesCluster(work.settings)
    cluster.require_server(work.params.master.removeprefix("k8s://"))
    try:
        namespace = pod_namespace(work.params, find_spark())
    except CannotRun as error:
        raise WorkFailed(str(error)) from error
    end_pods(cluster, namespace, work.tag, _END_S)


def _application(work: Work[SparkParams]) -> str:
    if work.params.application is not None:
        return work.params.application
    assert work.params.script is not None
    return str(write_program(work.folder, "script.py", work.params.script))


def _events_folder(work: Work[SparkParams], spark_home: Path) -> Path | None:
    """Make the folder for the driver's events; None if it is to write none for us."""
    if work.params.deploy_mode == "cluster" or has_own_event_log(work.params, spark_home):
        return None
    folder = work.folder / "spark-events"
    folder.mkdir(mode=0o700)
    return folder


class _SubmitWatcher(threading.Thread):
    """Tells the application's id and how far it is. Ends with the process."""

    def __init__(self, work: Work[SparkParams], folder: Path) -> None:
        super().__init__(name="events", daemon=True)
        self._work, self._application = work, Application()
        self._log = EventLog(folder, self._application)
        self._told = ""

    def run(self) -> None:
        """See Thread."""
        while True:
            if self._log.read():
                self._tell()
            time.sleep(LOOK_S)

    def _tell(self) -> None:
        application = self._application
        if application.id != self._told:
            self._told = application.id
            self._work.log(f"shoal: Spark application {application.id}")
        if application.tasks:
            done, total = application.done, application.tasks
            self._work.progress(done, total, "tasks", application.label)

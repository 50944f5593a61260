"""The command line and the environment of ``spark-submit`` on this worker."""

import importlib.util
import os
import re
import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from shoal.worker.types.program import CannotRun, placeholders_left

if TYPE_CHECKING:  # workers that run no such task do without
    from shoal.worker.types.spark.kind import SparkParams

# Spark logs what concerns the application; its own progress would drown the task's output.
LOG4J = """\
status = error
rootLogger.level = warn
rootLogger.appenderRef.stderr.ref = stderr
appender.stderr.type = Console
appender.stderr.name = stderr
appender.stderr.target = SYSTEM_ERR
appender.stderr.layout.type = PatternLayout
appender.stderr.layout.pattern = %d{HH:mm:ss} %p %c{1}: %m%n%ex
logger.yarn.name = org.apache.hadoop.yarn.client.api.impl.YarnClientImpl
logger.yarn.level = info
logger.native.name = org.apache.hadoop.util.NativeCodeLoader
logger.native.level = error
"""
# A driver of its own for a short while: no process outside the machine needs to reach it.
_LOCAL_CONF = {
    "spark.ui.enabled": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
}
_EVENT_LOG = "spark.eventLog."
_NAMESPACE = "spark.kubernetes.namespace"
#: Label of pods: the tag. The same as that of ``types.kubernetes``, which only its users import.
POD_LABEL = "shoal-tag"


def options(params: "SparkParams", name: str, conf: Mapping[str, str] | None = None) -> list[str]:
    """Return the options for ``spark-submit``, each with its value.

    ``conf`` are settings of the worker's; those of the task come before them.
    """
    values: dict[str, str | int | None] = {
        "--master": params.master,
        "--deploy-mode": params.deploy_mode,
        "--name": name,
        "--class": params.main_class,
        "--driver-memory": params.driver_memory,
        "--driver-cores": params.driver_cores,
        "--executor-memory": params.executor_memory,
        "--executor-cores": params.executor_cores,
        "--num-executors": params.num_executors,
        "--queue": params.queue,
        "--py-files": ",".join(params.py_files),
        "--jars": ",".join(params.jars),
        "--files": ",".join(params.files),
    }
    local = _LOCAL_CONF if params.master.startswith("local") else {}
    settings = {**local, **(conf or {}), **params.conf}
    argv = [text for option, value in values.items() if value for text in (option, str(value))]
    return argv + [text for key, value in settings.items() for text in ("--conf", f"{key}={value}")]


def event_log_conf(folder: Path) -> dict[str, str]:
    """Return the settings that make a driver on this worker write its events to ``folder``."""
    return {
        f"{_EVENT_LOG}enabled": "true",
        f"{_EVENT_LOG}dir": folder.as_uri(),
        f"{_EVENT_LOG}compress": "false",
        f"{_EVENT_LOG}buffer.kb": "1k",  # what happens is there at once
        f"{_EVENT_LOG}rolling.enabled": "true",
        f"{_EVENT_LOG}rolling.maxFileSize": "10m",  # what is read can go
        f"{_EVENT_LOG}logStageExecutorMetrics": "false",
    }


def yarn_conf(tag: str) -> dict[str, str]:
    """Return the settings by which an application is found again, and is run once."""
    return {
        "spark.yarn.tags": tag,
        "spark.yarn.submit.waitAppCompletion": "true",
        "spark.yarn.maxAppAttempts": "1",  # another attempt is the task's to say
    }


def is_in_pod(params: "SparkParams") -> bool:
    """Whether the driver is a pod in Kubernetes, which goes on when ``spark-submit`` has died."""
    return params.master.startswith("k8s://") and params.deploy_mode == "cluster"


def pod_namespace(params: "SparkParams", spark_home: Path) -> str:
    """Return the namespace of a driver in Kubernetes: the task's, else the worker's. Blocks."""
    if own := params.conf.get(_NAMESPACE):
        return own
    for line in _defaults(spark_home):
        key, *value = re.split(r"[\s=:]+", line.strip(), maxsplit=1)
        if key == _NAMESPACE and value:
            return value[0].strip()
    return "default"


def pod_conf(tag: str, namespace: str) -> dict[str, str]:
    """Return the settings by which driver and executors are found again in Kubernetes."""
    return {
        _NAMESPACE: namespace,
        f"spark.kubernetes.driver.label.{POD_LABEL}": tag,
        f"spark.kubernetes.executor.label.{POD_LABEL}": tag,
        "spark.kubernetes.submission.waitAppCompletion": "true",
    }


def has_own_event_log(params: "SparkParams", spark_home: Path) -> bool:
    """Whether the task, or the worker's Spark, writes its events somewhere already."""
    if any(key.startswith(_EVENT_LOG) for key in params.conf):
        return True
    return worker_sets(spark_home, _EVENT_LOG)


def worker_sets(spark_home: Path, prefix: str) -> bool:
    """Whether the defaults of the worker's Spark set something that begins so. Blocks."""
    return any(line.strip().startswith(prefix) for line in _defaults(spark_home))


def _defaults(spark_home: Path) -> list[str]:
    folder = os.environ.get("SPARK_CONF_DIR") or spark_home / "conf"
    try:
        text = Path(folder, "spark-defaults.conf").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return []
    return text.splitlines()


def environment(
    work_dir: Path, spark_home: Path, params: "SparkParams", java_options: Sequence[str] = ()
) -> dict[str, str]:
    """Return the variables for ``spark-submit``, and make what they name."""
    scratch, temporary = work_dir / "spark-local", work_dir / "tmp"
    scratch.mkdir(mode=0o700)
    temporary.mkdir(mode=0o700)
    # Spark's script cuts its options at blanks. The attempt's folder is the current one.
    shown = temporary.name if " " in str(temporary) else str(temporary)
    java = [f"-Djava.io.tmpdir={shown}", *java_options]  # a killed driver leaves nothing elsewhere
    driver = os.environ.get("PYSPARK_DRIVER_PYTHON") or sys.executable
    env = {
        "SPARK_HOME": str(spark_home),
        "SPARK_LOCAL_DIRS": str(scratch),
        "PYSPARK_DRIVER_PYTHON": driver,
        "PYTHONUNBUFFERED": "1",  # the script's prints reach the log as they happen
    }
    if params.master.startswith("local"):
        env["SPARK_LOCAL_IP"] = "127.0.0.1"
        env["PYSPARK_PYTHON"] = driver  # elsewhere the cluster's own, or the worker's say
    if "SPARK_CONF_DIR" not in os.environ and not (spark_home / "conf").is_dir():
        log4j = work_dir / "log4j2.properties"
        log4j.write_text(LOG4J, encoding="ascii")
        java.append(f"-Dlog4j2.configurationFile={log4j.as_uri()}")
    own = os.environ.get("SPARK_SUBMIT_OPTS", "")
    env["SPARK_SUBMIT_OPTS"] = " ".join(filter(None, [*java, own]))
    return env


def find_spark() -> Path:
    """Return the home of the worker's Spark. Raises CannotRun."""
    if home := os.environ.get("SPARK_HOME"):
        found = Path(home)
        where = f"SPARK_HOME={home}"
    else:
        spec = importlib.util.find_spec("pyspark")  # located, not imported
        if spec is None or spec.origin is None:
            raise CannotRun(
                "no Spark on this worker: install the package pyspark beside Shoal "
                "(pip install 'shoal[spark]') or set SPARK_HOME for the worker"
            )
        found = Path(spec.origin).parent
        where = f"the pyspark package in {found}"
    if not (found / "bin" / "spark-submit").is_file():
        raise CannotRun(f"no Spark on this worker: {where} has no bin/spark-submit")
    return found


def require_java() -> None:
    """Raise CannotRun if the worker has no Java."""
    home = os.environ.get("JAVA_HOME")
    if home:
        if not os.access(Path(home, "bin", "java"), os.X_OK):
            raise CannotRun(
                f"no Java on this worker: JAVA_HOME={home} has no bin/java; correct it and start "
                "the worker again"
            )
    elif shutil.which("java") is None:
        raise CannotRun(
            "no Java on this worker: Spark needs Java 17 or newer; install it, or set JAVA_HOME "
            "for the worker (`shoal up` brings its own)"
        )


def require_rendered(params: "SparkParams") -> None:
    """Raise CannotRun if a placeholder is left in a field that no program reads."""
    fields = ("master", "name", "main_class", "queue", "driver_memory", "executor_memory")
    texts = [getattr(params, field) for field in fields]
    texts += [params.application or "", *params.py_files, *params.jars, *params.files]
    if left := placeholders_left(texts):
        raise CannotRun(f"no parameter of the workflow fills the placeholder in {left[0]!r}")

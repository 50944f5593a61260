"""SPARK: an application for ``spark-submit``, described by typed fields.

``spark-submit`` takes dozens of options, some of which run programs or read files of the worker.
So no text of a task ever becomes an option: every field has one place on the command line, values
that start with a dash are refused, and ``conf`` has a list of what it may not set.
"""

import importlib.util
import os
import re
import shutil
import sys
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, StringConstraints, field_validator, model_validator

from shoal.core.task_types import Exit, TaskContext, TaskParams, TaskType
from shoal.worker.types.program import (
    Arguments,
    CannotRun,
    Plain,
    Program,
    placeholders_left,
    write_program,
)

# Settings that a field of its own covers: one way to say a thing.
FIELDS = {
    "spark.master": "master",
    "spark.submit.deployMode": "deploy_mode",
    "spark.submit.pyFiles": "py_files",
    "spark.app.name": "name",
    "spark.driver.memory": "driver_memory",
    "spark.driver.cores": "driver_cores",
    "spark.executor.memory": "executor_memory",
    "spark.executor.cores": "executor_cores",
    "spark.executor.instances": "num_executors",
    "spark.yarn.queue": "queue",
    "spark.jars": "jars",
    "spark.files": "files",
}
# Settings that load code, start programs or read files of the worker, or loosen its protection.
DENIED = re.compile(
    r"""spark\.submit\..*            # how the application is started is not the task's to say
    |.*\.(extra|default)JavaOptions  # any option of the Java runtime, agents included
    |.*\.extraClassPath|.*\.extraLibraryPath|.*\.userClassPathFirst
    |spark\.jars\..*                 # packages, repositories and their settings file
    |spark\.plugins.*|spark\.extraListeners|spark\.sql\.extensions
    |.*discoveryScript|.*discoveryPlugin
    |spark\.(pyspark|r|sparkr)\..*   # interpreters
    |spark\.executorEnv\..*|spark\.yarn\.appMasterEnv\..*|spark\.kubernetes\.driverEnv\..*
    |.*podTemplateFile|spark\.yarn\.(dist|archive|jars).*|spark\.archives
    |spark\.metrics\.conf.*|spark\.redaction\..*|spark\.authenticate.*
    """,
    re.VERBOSE | re.IGNORECASE,
)
_CONF_KEY = re.compile(r"spark\.[A-Za-z0-9_.\-]+")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_PLACEHOLDER = r"|.*\$[{\[].*"  # rendered by the master; judged again with its value

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
logger.native.name = org.apache.hadoop.util.NativeCodeLoader
logger.native.level = error
"""


def _one_line(text: str) -> str:
    if _CONTROL.search(text):
        raise ValueError("must not contain line ends or other control characters")
    return text


def _no_comma(text: str) -> str:
    if not text.strip() or "," in text:
        raise ValueError(f"{text!r}: expected one path or URL without a comma")
    return text


Line = Annotated[Plain, AfterValidator(_one_line)]
FileName = Annotated[Line, AfterValidator(_no_comma)]
Memory = Annotated[
    Line, StringConstraints(pattern=rf"^(?:|[1-9][0-9]*[kmgtKMGT][bB]?{_PLACEHOLDER})$")
]
Master = Annotated[
    Line,
    StringConstraints(
        pattern=r"^(?:local(?:\[(?:\*|[1-9][0-9]*)(?:,[1-9][0-9]*)?\])?|yarn|spark://\S+|k8s://\S+"
        + _PLACEHOLDER
        + r")$"
    ),
]
Queue = Annotated[Line, StringConstraints(pattern=rf"^(?:[A-Za-z0-9_.\-]*{_PLACEHOLDER})$")]
Count = Annotated[int, Field(ge=1, le=100_000)]


class SparkParams(TaskParams):
    """What a SPARK task submits.

    ``conf`` must not set what a field of its own covers, nor what loads code, starts programs or
    names files of the worker: ``*.extraJavaOptions``, ``*.defaultJavaOptions``,
    ``*.extraClassPath``, ``*.extraLibraryPath``, ``spark.submit.*``, ``spark.jars.*``,
    ``spark.plugins*``, ``spark.extraListeners``, ``spark.sql.extensions``, discovery scripts,
    interpreters (``spark.pyspark.*``), environment variables of drivers and executors, pod
    templates, ``spark.metrics.conf*``, ``spark.redaction.*``, ``spark.authenticate*``.

    Parameters reach the driver as environment variables and in the JSON file that
    ``SHOAL_PARAMETERS`` names, as for PYTHON (on the worker, that is in deploy mode client);
    ``arguments`` reach it everywhere.
    """

    script: Program | None = Field(default=None, description="Source of a PySpark program.")
    application: FileName | None = Field(
        default=None, description="Instead of a script: path or URL of a .py or .jar file."
    )
    main_class: Annotated[Line, StringConstraints(pattern=rf"^(?:[\w.$]*{_PLACEHOLDER})$")] = Field(
        default="", description="Class to start, needed for a jar without one in its manifest."
    )
    arguments: Arguments = ()
    master: Master = Field(
        default="local[*]", description="local[N], spark://host:port, yarn or k8s://https://…"
    )
    deploy_mode: Literal["client", "cluster"] = Field(
        default="client", description="Where the driver runs: on the worker or in the cluster."
    )
    name: Line = Field(default="", description="Name of the application in Spark's own pages.")
    driver_memory: Memory = Field(default="", description="Such as 512m or 2g.")
    driver_cores: Count | None = None
    executor_memory: Memory = Field(default="", description="Of each executor, such as 4g.")
    executor_cores: Count | None = None
    num_executors: Count | None = None
    queue: Queue = Field(default="", description="Of YARN.")
    py_files: tuple[FileName, ...] = Field(default=(), description=".py, .zip or .egg files.")
    jars: tuple[FileName, ...] = ()
    files: tuple[FileName, ...] = ()
    conf: dict[str, Line] = Field(default_factory=dict, description="Further spark.* settings.")

    @field_validator("arguments")
    @classmethod
    def _survive_the_start_script(cls, arguments: tuple[str, ...]) -> tuple[str, ...]:
        # spark-class removes them from the command line that it puts together.
        if any("\r" in argument for argument in arguments):
            raise ValueError("must not contain carriage returns: spark-submit drops them")
        return arguments

    @field_validator("conf")
    @classmethod
    def _only_harmless_settings(cls, conf: dict[str, str]) -> dict[str, str]:
        for key in conf:
            if not _CONF_KEY.fullmatch(key):
                raise ValueError(f"{key!r} is no Spark setting: expected spark.…")
            if key in FIELDS:
                raise ValueError(f"{key}: use the field {FIELDS[key]!r}")
            if DENIED.fullmatch(key):
                raise ValueError(
                    f"{key} cannot be set by a task: it could load code or read files of the worker"
                )
        return conf

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        if (self.script is None) == (self.application is None):
            raise ValueError("give exactly one of script and application")
        if self.main_class and self.script is not None:
            raise ValueError("main_class is for a jar; a script has none")
        if self.deploy_mode == "cluster" and self.master.startswith("local"):
            raise ValueError(f"deploy_mode cluster needs a cluster, but master is {self.master}")
        if self.deploy_mode == "cluster" and self.script is not None:
            raise ValueError(
                "a script is a file on the worker, which a driver in the cluster cannot read; "
                "put it where the cluster finds it and name it in application"
            )
        return self


class Spark(TaskType[SparkParams]):
    """Runs ``spark-submit`` of the worker's Spark to the end of the application.

    Spark is that of ``SPARK_HOME``, else the PySpark package beside Shoal. Killing the task kills
    the driver in deploy mode client, and with it the application.
    """

    Params = SparkParams

    async def run(self, context: TaskContext, params: SparkParams) -> Exit:
        _require_rendered(params)
        spark_home = find_spark()
        _require_java()
        if params.application is not None:
            application = params.application
        else:
            assert params.script is not None
            application = str(write_program(context.work_dir, "script.py", params.script))
        name = params.name or f"shoal-{context.task_instance_id}"
        argv = [str(spark_home / "bin" / "spark-submit"), *options(params, name)]
        return await context.run_process(
            [*argv, application, *params.arguments],
            env=_environment(context.work_dir, spark_home, params),
        )


def options(params: SparkParams, name: str) -> list[str]:
    """Return the options for ``spark-submit``, each with its value."""
    local = params.master.startswith("local")
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
    conf = {**(_LOCAL_CONF if local else {}), **params.conf}
    argv = [text for option, value in values.items() if value for text in (option, str(value))]
    return argv + [text for key, value in conf.items() for text in ("--conf", f"{key}={value}")]


# A driver of its own for a short while: no process outside the machine needs to reach it.
_LOCAL_CONF = {
    "spark.ui.enabled": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
}


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


def _require_java() -> None:
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


def _require_rendered(params: SparkParams) -> None:
    fields = ("master", "name", "main_class", "queue", "driver_memory", "executor_memory")
    texts = [getattr(params, field) for field in fields]
    texts += [params.application or "", *params.py_files, *params.jars, *params.files]
    if left := placeholders_left(texts):
        raise CannotRun(f"no parameter of the workflow fills the placeholder in {left[0]!r}")


def _environment(work_dir: Path, spark_home: Path, params: SparkParams) -> dict[str, str]:
    temporary = work_dir / "spark-local"
    temporary.mkdir(mode=0o700)
    env = {
        "SPARK_HOME": str(spark_home),
        "SPARK_LOCAL_DIRS": str(temporary),
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        "PYTHONUNBUFFERED": "1",  # the script's prints reach the log as they happen
    }
    if params.master.startswith("local"):
        env["SPARK_LOCAL_IP"] = "127.0.0.1"
        env["PYSPARK_PYTHON"] = sys.executable  # elsewhere the cluster's own, or the worker's say
    if "SPARK_CONF_DIR" not in os.environ and not (spark_home / "conf").is_dir():
        conf = work_dir / "spark-conf"
        conf.mkdir(mode=0o700)
        (conf / "log4j2.properties").write_text(LOG4J, encoding="ascii")
        env["SPARK_CONF_DIR"] = str(conf)
    return env

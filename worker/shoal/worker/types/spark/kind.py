"""The task type SPARK and its fields.

``spark-submit`` takes dozens of options, some of which run programs or read files of the worker.
So no text of a task ever becomes an option: every field has one place on the command line, values
that start with a dash are refused, and ``conf`` has a list of what it may not set.
"""

import re
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, StringConstraints, field_validator, model_validator

from shoal.core.task_types import TaskParams
from shoal.worker.types.child.kind import ChildType
from shoal.worker.types.program import Arguments, Plain, Program

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
    |spark\.yarn\.(tags|submit\..*)  # an application is found by its tag, and waited for
    |spark\.kubernetes\.(driver|executor)\.label\.shoal-.*  # likewise in Kubernetes
    |spark\.metrics\.conf.*|spark\.redaction\..*|spark\.authenticate.*
    """,
    re.VERBOSE | re.IGNORECASE,
)
_SIZE = re.compile(r"([0-9]+)([kmgtKMGT])[bB]?")
_UNITS = {"k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}
LEAST_DRIVER_MEMORY = 450 << 20  # bytes: Spark reserves 300 MiB and asks for half as much again
_CONF_KEY = re.compile(r"spark\.[A-Za-z0-9_.\-]+")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_PLACEHOLDER = r"|.*\$[{\[].*"  # rendered by the master; judged again with its value


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
    templates, ``spark.yarn.tags``, ``spark.yarn.submit.*``, ``spark.metrics.conf*``,
    ``spark.redaction.*``, ``spark.authenticate*``, labels ``shoal-*`` of drivers and executors.

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
    driver_memory: Memory = Field(default="", description="Such as 512m or 2g; at least 450m.")
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
                raise ValueError(f"{key!r} is not a Spark setting: expected spark.…")
            if key in FIELDS:
                raise ValueError(f"{key}: use the field {FIELDS[key]!r}")
            if DENIED.fullmatch(key):
                raise ValueError(
                    f"{key} cannot be set by a task: it could load code or read files of the worker"
                )
        return conf

    @field_validator("driver_memory")
    @classmethod
    def _enough_for_a_driver(cls, memory: str) -> str:
        match = _SIZE.fullmatch(memory)
        if match and int(match[1]) * _UNITS[match[2].lower()] < LEAST_DRIVER_MEMORY:
            raise ValueError(f"{memory}: Spark's driver does not start with less than 450m")
        return memory

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        if (self.script is None) == (self.application is None):
            raise ValueError("give exactly one of script and application")
        if self.main_class and self.script is not None:
            raise ValueError("main_class is for a jar; a script has none")
        if self.deploy_mode == "cluster" and self.master.startswith("local"):
            raise ValueError(f"deploy_mode cluster needs a cluster, but master is {self.master}")
        if self.deploy_mode == "cluster" and self.master.startswith("spark://"):
            raise ValueError(
                "deploy_mode cluster is for YARN and Kubernetes: a standalone master restarts and "
                "forgets drivers by rules of its own; use client"
            )
        if self.deploy_mode == "cluster" and self.script is not None:
            raise ValueError(
                "a script is a file on the worker, which a driver in the cluster cannot read; "
                "put it where the cluster finds it and name it in application"
            )
        return self


class Spark(ChildType[SparkParams]):
    """Runs ``spark-submit`` of the worker's Spark to the end of the application.

    Spark is that of ``SPARK_HOME``, else the PySpark package beside Shoal. Killed means that the
    driver has ended, and in YARN the application, wherever its driver was.
    """

    Params = SparkParams
    permanent_exit_codes = frozenset()  # its exit codes are the application's
    work = "shoal.worker.types.spark.submit:submit"
    settles = True
    uses_environment = True

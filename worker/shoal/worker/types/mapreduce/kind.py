"""The task type MR and its fields."""

import re
from typing import Annotated

from pydantic import AfterValidator, Field, field_validator

from shoal.core.task_types import TaskParams
from shoal.worker.types.child.kind import ChildType
from shoal.worker.types.program import Arguments, Plain

_KEY = re.compile(r"[A-Za-z][A-Za-z0-9_.\-]*")
# By these a job is found again and ended, or they have a field of their own.
OURS = {
    "mapreduce.job.tags": "Shoal finds the job by it",
    "mapreduce.framework.name": "the worker's Hadoop settings say where jobs run",
    "mapreduce.job.queuename": "use the field 'queue'",
    "tmpfiles": "use the field 'files'",
    "tmpjars": "use the field 'jars'",
}
_PLACEHOLDER = r"|.*\$[{\[].*"  # rendered by the master; judged again with its value


def _path(text: str) -> str:
    if not text.strip() or "," in text or re.search(r"[\x00-\x1f\x7f]", text):
        raise ValueError(f"{text!r}: expected one path or URL, without a comma")
    return text


def _deep_enough(path: str) -> str:
    if "$" not in path and len([part for part in path.split("/") if part.strip(".:")]) < 2:
        raise ValueError(f"{path!r}: not deleted, it is too near to the root of the file system")
    return _path(path)


FileName = Annotated[Plain, AfterValidator(_path)]


class MapReduceParams(TaskParams):
    """What an MR task submits.

    The program is started by Hadoop's ``RunJar``, as by ``hadoop jar``. Its jobs get the settings
    of ``conf`` whether it reads options by ToolRunner or not. Parameters are environment variables
    of the program that submits; ``arguments`` and ``conf`` reach the job.
    """

    jar: FileName = Field(description="The jar, a path on the worker.")
    main_class: Annotated[
        Plain, Field(pattern=rf"^(?:[\w.$]*{_PLACEHOLDER})$", description="Empty: the manifest's.")
    ] = ""
    arguments: Arguments = ()
    queue: Annotated[Plain, Field(pattern=rf"^(?:[A-Za-z0-9_.\-]*{_PLACEHOLDER})$")] = Field(
        default="", description="Of YARN."
    )
    files: tuple[FileName, ...] = Field(
        default=(), description="Files on the worker that every task of the job finds beside it."
    )
    jars: tuple[FileName, ...] = Field(
        default=(), description="Jars on the worker, for the program and the tasks of its jobs."
    )
    conf: dict[str, str] = Field(default_factory=dict, description="Further Hadoop settings.")
    overwrite: Annotated[Plain, AfterValidator(_deep_enough)] | None = Field(
        default=None,
        description="A folder that is deleted before the start: jobs refuse one that exists.",
    )

    @field_validator("conf")
    @classmethod
    def _not_ours(cls, conf: dict[str, str]) -> dict[str, str]:
        for key, value in conf.items():
            if not _KEY.fullmatch(key):
                raise ValueError(f"{key!r} is not a Hadoop setting")
            if key in OURS:
                raise ValueError(f"{key} cannot be set: {OURS[key]}")
            if re.search(r"[\x00-\x08\x0b\x0c\x0e-\x1f]", value):
                raise ValueError(f"{key}: its value holds control characters")
        return conf


class MapReduce(ChildType[MapReduceParams]):
    """Runs a MapReduce program. Killed means that its jobs have ended, in a cluster, too.

    Hadoop's client is the one among Spark's jars. ``HADOOP_CONF_DIR`` of the worker says where jobs
    run; without it they run in the attempt's own process.
    """

    Params = MapReduceParams
    permanent_exit_codes = frozenset()  # its exit codes are the program's
    work = "shoal.worker.types.mapreduce.run:run"
    settles = True
    uses_environment = True

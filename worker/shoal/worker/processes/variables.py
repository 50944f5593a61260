"""The environment variables of a task's processes, built from nothing.

Tasks inherit nothing of the worker but an allow-list, so its own settings, credentials and
addresses stay with it. Beside that they get their identity (``SHOAL_…``) and their parameters:

- ``SHOAL_PARAMETERS`` names a JSON file with all of them, whatever their size;
- each is a variable ``SHOAL_PARAM_<NAME>`` (upper case) and one of its own name, unless that name
  means something to shells, interpreters or loaders, or is an output's that the definition neither
  declares nor names. Values above 100 KB, those that do not fit
  into 1 MB together (the smallest go first), and those with a NUL character are in the file only;
- secrets that the task uses are variables ``SHOAL_SECRET_<name>``, never in the file.

``environment`` adds those of the environment that the workflow names.
"""

import os
from collections.abc import Iterable, Mapping
from datetime import datetime
from pathlib import Path
from zoneinfo import ZoneInfo

from shoal.core.definition.parameters import reserved_parameter
from shoal.core.errors import ShoalError
from shoal.proto import shoal_pb2 as pb

INHERITED = (
    *("PATH", "HOME", "USER", "LOGNAME", "SHELL", "TZ", "LANG", "LANGUAGE", "LC_ALL", "LC_CTYPE"),
    *("LC_COLLATE", "LC_NUMERIC", "LC_TIME", "LC_MESSAGES", "LD_LIBRARY_PATH", "VIRTUAL_ENV"),
    *("JAVA_HOME", "SPARK_HOME", "SPARK_CONF_DIR", "HADOOP_HOME", "HADOOP_CONF_DIR"),
    *("YARN_CONF_DIR", "PYSPARK_PYTHON", "KRB5_CONFIG", "KRB5CCNAME", "SSL_CERT_FILE"),
    "SSL_CERT_DIR",
)
LONGEST_VALUE = 100 * 1024  # bytes; Linux refuses a variable above 128 KiB
MOST_SECRET_BYTES = 256 * 1024  # of all secrets, which are in no file
MOST_BYTES = 1024 * 1024  # of all parameters; Linux refuses some 2 MB of arguments and variables
# A parameter of such a name would steer the programs that see it instead of informing them.
STEERING_PREFIXES = ("PYTHON", "JAVA_", "_JAVA_", "JDK_", "SPARK_", "PYSPARK_", "HADOOP_", "YARN_")
STEERING = frozenset(
    {"CDPATH", "CLASSPATH", "GLOBIGNORE", "NODE_OPTIONS", "NODE_PATH", "PERL5LIB", "PERL5OPT"}
    | {"PS4", "RUBYLIB", "RUBYOPT", "SHELLOPTS", "BASHOPTS", "BASH_ENV", "POSIXLY_CORRECT"}
)


class SecretsTooLarge(ShoalError):
    """The secrets of a task do not fit into its environment."""

    def __init__(self, size: int, most: int) -> None:
        self.size, self.most = size, most
        super().__init__(
            f"the secrets that the task uses make {size:,} bytes, at most {most:,} fit into its "
            "environment; let it use fewer, or fetch large ones from a store of secrets"
        )


def base_environment(
    worker: Mapping[str, str], work_dir: Path, passed: Iterable[str] = ()
) -> dict[str, str]:
    """Return what a task takes over from the ``worker``'s environment, and its own TMPDIR."""
    env = {name: worker[name] for name in (*INHERITED, *passed) if name in worker}
    env.setdefault("PATH", os.defpath)
    env.setdefault("LANG", "C.UTF-8")
    env["TMPDIR"] = env["PWD"] = str(work_dir)
    return env


def identity(payload: pb.Payload, parameters_file: Path, output_file: Path) -> dict[str, str]:
    """Return the variables that say to a task which one it is, and where to write its outputs."""
    zone = ZoneInfo(payload.timezone or "UTC")
    return {
        "SHOAL_TASK_INSTANCE_ID": str(payload.task_instance_id),
        "SHOAL_WORKFLOW_INSTANCE_ID": str(payload.workflow_instance_id),
        "SHOAL_PROJECT": payload.project,
        "SHOAL_WORKFLOW": payload.workflow,
        "SHOAL_WORKFLOW_VERSION": str(payload.version),
        "SHOAL_TASK": payload.task,
        "SHOAL_ATTEMPT": str(payload.attempt),
        "SHOAL_EPOCH": str(payload.epoch),
        "SHOAL_LOGICAL_TIME": datetime.fromtimestamp(payload.logical_time, zone).isoformat(),
        "SHOAL_TIMEZONE": payload.timezone or "UTC",
        "SHOAL_PARAMETERS": str(parameters_file),
        "SHOAL_OUTPUT": str(output_file),
    }


def secret_variables(secrets: Mapping[str, str]) -> dict[str, str]:
    """Return the variables for ``secrets``. Raises SecretsTooLarge: none may be left out."""
    size = sum(len(value.encode()) for value in secrets.values())
    if size > MOST_SECRET_BYTES:
        raise SecretsTooLarge(size, MOST_SECRET_BYTES)
    return {f"SHOAL_SECRET_{name}": value for name, value in secrets.items()}


def parameter_variables(parameters: Mapping[str, str], taken: Iterable[str] = ()) -> dict[str, str]:
    """Return the variables for ``parameters``. None of them has a name in ``taken``."""
    names = set(taken)
    variables: dict[str, str] = {}
    room = MOST_BYTES
    for name, value in sorted(parameters.items(), key=lambda item: (len(item[1]), item[0])):
        size = len(value.encode("utf-8"))
        needed = 2 * (size + len(name) + 20)
        if size > LONGEST_VALUE or "\0" in value or needed > room:
            continue
        room -= needed
        variables[f"SHOAL_PARAM_{name.upper()}"] = value
        if name not in names and not _steers(name):
            variables[name] = value
    return variables


def _steers(name: str) -> bool:
    upper = name.upper()
    return reserved_parameter(name) or upper in STEERING or upper.startswith(STEERING_PREFIXES)

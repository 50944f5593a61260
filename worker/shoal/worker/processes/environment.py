"""The environment that a workflow names, on this worker: its variables and its interpreter.

The order, the later ones winning: the worker's own variables, those of the environment, what
follows from its ``python``, the parameters of the task, Shoal's own. What the environment's setup
exports comes last of all.

The setup is sourced by bash in the process that becomes the program. So the program has what the
setup exports, its limits and its umask, and a kill or a timeout in the middle of a setup ends it as
it would end the program.
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from shutil import which

from shoal.core.definition.environments import label
from shoal.core.errors import ShoalError
from shoal.proto import shoal_pb2 as pb
from shoal.worker.processes.work_files import write_new

SETUP_FILE = "environment.sh"
READY_FILE = "environment.ready"  # is there since the setup is over
#: Why an attempt has failed whose process has ended well without that file.
NOT_REACHED = "it has become another program"
# The setup may change the shell in any way: so nothing is left in positional parameters, nor in the
# current folder, and leaving the shell is noticed. It reads nothing that is meant for the program.
_SOURCE = """\
shoal_setup=$1 shoal_ready=$2 shoal_folder=$PWD; shoal_program=("${@:3}"); set --
trap 'shoal_code=$?; if [ "$shoal_code" = 0 ]; then shoal_code=1
echo "the setup has called exit"; fi; exit "$shoal_code"' EXIT
. "$shoal_setup" </dev/null
shoal_code=$?
if [ "$shoal_code" != 0 ]; then exit "$shoal_code"; fi
cd -- "$shoal_folder" || exit 1
: >|"$shoal_ready" || exit 1
trap - EXIT
exec -- "${shoal_program[@]}"
"""
_VIRTUAL = "pyvenv.cfg"  # the file that makes a folder a virtual environment


class EnvironmentUnusable(ShoalError):
    """A worker cannot give a task its environment."""

    def __init__(self, name: str, group: str, problem: str) -> None:
        self.name, self.group = name, group
        super().__init__(f"environment {name}: {problem} (worker group {group})")


@dataclass(frozen=True)
class Named:
    """An environment that can be used here. Empty texts: it has none of it.

    ``python`` is the path of an interpreter. ``variables`` are all that it adds, PATH included.
    """

    label: str = ""  # NAME@VERSION
    python: str = ""
    setup: str = ""
    variables: Mapping[str, str] = field(default_factory=dict)
    without: frozenset[str] = frozenset()  # variables of the worker that do not apply in it


def named_environment(payload: pb.Payload, base: Mapping[str, str], group: str) -> Named:
    """Return what the payload's environment is here; an empty one if it has none. Blocks.

    ``base``: the variables that a task takes over from the worker, whose group is ``group``.
    Raises EnvironmentUnusable.
    """
    if not payload.HasField("environment"):
        return Named()
    given = payload.environment
    variables = dict(given.variables)
    python, without = "", frozenset[str]()
    if given.python:
        interpreter = _interpreter(given, group)
        python, folder = str(interpreter), interpreter.parent
        path = variables.get("PATH", base["PATH"])
        variables["PATH"] = os.pathsep.join(filter(None, [str(folder), path]))
        # Spark's drivers are Python, too; executors elsewhere have an interpreter of their own.
        variables.setdefault("PYSPARK_DRIVER_PYTHON", python)
        if (folder.parent / _VIRTUAL).is_file():
            variables["VIRTUAL_ENV"] = str(folder.parent)
        else:
            without = frozenset({"VIRTUAL_ENV"})  # the worker's is another Python's
    return Named(environment_of(payload), python, given.setup, variables, without)


def environment_of(payload: pb.Payload) -> str:
    """Return the payload's environment as NAME@VERSION; empty: it has none."""
    if not payload.HasField("environment"):
        return ""
    return label(payload.environment.name, payload.environment.version)


def _interpreter(given: pb.Environment, group: str) -> Path:
    """Return the interpreter that a path names; links are not followed: they make it virtual."""
    path = Path(given.python)
    found = path / "bin" / "python" if path.is_dir() else path
    if os.access(found, os.X_OK) and found.is_file():
        return found
    there = os.path.lexists(found)
    raise EnvironmentUnusable(
        given.name,
        group,
        f"{found} cannot be run on this worker"
        if there
        else f"this worker has no {found}; make "
        "it on all workers of the group, or name another one with "
        f"`shoal environment set {given.name} --python PATH`",
    )


@dataclass(frozen=True)
class Setup:
    """The setup of one attempt, whose files are in its folder."""

    label: str  # NAME@VERSION of the environment
    folder: Path
    bash: str

    def argv(self, program: Sequence[str]) -> list[str]:
        """Return the command line that sources the setup and then becomes ``program``."""
        files = [str(self.folder / SETUP_FILE), str(self.folder / READY_FILE)]
        return [self.bash, "--norc", "-c", _SOURCE, "bash", *files, *program]

    def failure(self) -> str | None:
        """Return why the program of a process that is over was not reached; None: it was.

        Blocks.
        """
        if (self.folder / READY_FILE).exists():
            return None
        return f"the setup of environment {self.label} failed"


def prepare_setup(named: Named, folder: Path, path: str, group: str) -> Setup | None:
    """Write what the setup needs to an attempt's folder; None: there is no setup. Blocks.

    ``path``: the PATH in which bash is looked for. Raises EnvironmentUnusable, OSError.
    """
    if not named.setup:
        return None
    bash = which("bash", path=path)
    if bash is None:
        name = named.label.rpartition("@")[0]
        problem = "its setup needs bash, which is not in the PATH of this worker; install it"
        raise EnvironmentUnusable(name, group, problem)
    write_new(folder / SETUP_FILE, named.setup.encode("utf-8"), 0o600)
    return Setup(named.label, folder, bash)

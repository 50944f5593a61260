"""The setup of an environment: sourced by bash in the process that becomes the program.

So the program has what the setup exports, its limits and its umask, and a kill or a timeout in the
middle of a setup ends it as it would end the program.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from shutil import which

from shoal.worker.execution.environment.named import EnvironmentUnusable, Named
from shoal.worker.execution.work_files import write_new

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

"""Errors of the worker.

::

    ShoalError
    ├── WorkerError
    │   ├── HomeBusy          the processes of an earlier worker do not end
    │   ├── WorkFolderTaken   two workers would empty each other's work folder
    │   ├── AttemptEnded      an attempt was ended before its program could start
    │   └── SecretsTooLarge   a task uses more secrets than fit into its environment
    ├── CannotRun             types/program.py: Spark or Java is missing …
    ├── LaunchFailed, LauncherDied, LauncherUnavailable      launching.py
    └── BadLogAddress, LogNotFound                           logs.py
"""

from pathlib import Path

from shoal.core.errors import ShoalError


class WorkerError(ShoalError):
    """Base of this branch."""


class HomeBusy(WorkerError):
    """The folder of a worker is still used by the processes of its predecessor."""

    def __init__(self, folder: Path, waited_s: float) -> None:
        self.folder = folder
        super().__init__(
            f"task processes of the worker that used {folder} before have not ended within "
            f"{waited_s:g} s; `fuser {folder / 'processes.lock'}` names them; end them and start "
            "the worker again"
        )


class WorkFolderTaken(WorkerError):
    """Another running worker keeps its attempts in the same folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        super().__init__(
            f"another worker, with another data folder, uses the work folder {folder}; give one "
            "of them another work_dir or name"
        )


class SecretsTooLarge(WorkerError):
    """The secrets of a task do not fit into its environment."""

    def __init__(self, size: int, most: int) -> None:
        self.size, self.most = size, most
        super().__init__(
            f"the secrets that the task uses make {size:,} bytes, at most {most:,} fit into its "
            "environment; let it use fewer, or fetch large ones from a store of secrets"
        )


class AttemptEnded(WorkerError):
    """The attempt was to end before its program was started."""

    def __init__(self, task_instance_id: int, why: str) -> None:
        self.task_instance_id, self.why = task_instance_id, why
        super().__init__(f"task instance {task_instance_id} does not start: {why}")

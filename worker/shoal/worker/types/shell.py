"""SHELL: a script for ``sh`` or ``bash``."""

from typing import Literal

from pydantic import Field

from shoal.core.task_types import Exit, TaskContext, TaskParams, TaskType
from shoal.worker.types.program import Arguments, Program, write_program


class ShellParams(TaskParams):
    """What a SHELL task runs.

    Parameters reach the script as environment variables, never as text: ``${name}`` is expanded
    by the shell itself, so a value with quotes, newlines or ``$(…)`` is data and never runs
    (write ``"${name}"``, as for any variable). Date expressions ``$[…]`` are rendered before the
    script starts. The shell runs without options; begin the script with ``set -eu`` to stop at
    the first failing command.
    """

    script: Program = Field(description="The script. Its exit status decides: 0 is success.")
    interpreter: Literal["sh", "bash"] = Field(
        default="sh", description="sh: the system's /bin/sh; bash: found on the worker's PATH."
    )
    arguments: Arguments = ()


class Shell(TaskType[ShellParams]):
    """Runs a shell script as a file in the attempt's own folder."""

    Params = ShellParams

    async def run(self, context: TaskContext, params: ShellParams) -> Exit:
        script = write_program(context.work_dir, "script.sh", params.script)
        shell = "/bin/sh" if params.interpreter == "sh" else params.interpreter
        return await context.run_process([shell, str(script), *params.arguments])

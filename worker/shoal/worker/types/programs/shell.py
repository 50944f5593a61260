"""SHELL: a script for ``sh`` or ``bash``."""

import re
from collections.abc import Mapping
from typing import Literal, Self

from pydantic import Field, model_validator

from shoal.core.task_types import Exit, TaskContext, TaskParams, TaskType
from shoal.worker.processes.variables import parameter_variables
from shoal.worker.types.program import (
    Arguments,
    CannotRun,
    Program,
    ProgramFile,
    beginning,
    program,
    require_one,
)


class ShellParams(TaskParams):
    """What a SHELL task runs.

    Parameters reach the script as environment variables, never as text: ``${name}`` is expanded
    by the shell itself, so a value with quotes, newlines or ``$(…)`` is data and never runs
    (write ``"${name}"``, as for any variable). Values too large for a variable (above 100 KiB) are
    only in the JSON file ``$SHOAL_PARAMETERS``, and a script that names such a variable fails.
    Date expressions ``$[…]`` are rendered before the script starts. The shell runs without
    options; begin the script with ``set -eu`` to stop at
    the first failing command.
    """

    script: Program | None = Field(
        default=None, description="The script. Its exit status decides: 0 is success."
    )
    file: ProgramFile = None
    interpreter: Literal["sh", "bash"] = Field(
        default="sh", description="sh: the system's /bin/sh; bash: found on the worker's PATH."
    )
    arguments: Arguments = ()

    @model_validator(mode="after")
    def _one_program(self) -> Self:
        require_one(self.script, self.file)
        return self


class Shell(TaskType[ShellParams]):
    """Runs a shell script as a file in the attempt's own folder."""

    Params = ShellParams

    async def run(self, context: TaskContext, params: ShellParams) -> Exit:
        script = program(context.work_dir, "script.sh", params.script, params.file)
        text = beginning(script) if params.script is None else params.script
        require_variables(text, context.parameters)
        shell = "/bin/sh" if params.interpreter == "sh" else params.interpreter
        return await context.run_process([shell, str(script), *params.arguments])


def require_variables(script: str, parameters: Mapping[str, str]) -> None:
    """Raise CannotRun if ``script`` names a parameter that is too large for a variable.

    The shell would take it for empty, and the task would succeed with the wrong result. Forms
    that say what to do without a value, such as ``${name:-…}`` and ``${name+…}``, are fine.
    """
    variables = parameter_variables(parameters)
    for name, value in parameters.items():
        long_name = f"SHOAL_PARAM_{name.upper()}"
        names = f"(?:{name}|{long_name})(?!\\w)"
        used = rf"\$(?:{names}|\{{#?{names}(?!:?[-+]))"
        if long_name not in variables and re.search(used, script):
            size = len(value.encode("utf-8"))
            raise CannotRun(
                f"the script names the parameter {name}, whose value of {size} bytes does not fit "
                "into an environment variable; read it from the JSON file $SHOAL_PARAMETERS"
            )

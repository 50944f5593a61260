"""PYTHON: a program for a Python interpreter."""

import sys

from pydantic import Field

from shoal.core.task_types import Exit, TaskContext, TaskParams, TaskType
from shoal.worker.types.program import Arguments, Plain, Program, write_program


class PythonParams(TaskParams):
    """What a PYTHON task runs.

    Parameters are environment variables (``os.environ["SHOAL_PARAM_DATE"]``), and all of them are
    in the JSON file that ``SHOAL_PARAMETERS`` names; they are never pasted into the text.
    """

    script: Program = Field(description="The program. Its exit status decides: 0 is success.")
    arguments: Arguments = ()
    interpreter: Plain = Field(
        default="",
        description="A Python on the worker: a path, or a name on its PATH such as python3.12. "
        "Empty: the worker's own Python, with the packages that are installed beside it.",
    )


class Python(TaskType[PythonParams]):
    """Runs a Python program as a file in the attempt's own folder, its output unbuffered."""

    Params = PythonParams

    async def run(self, context: TaskContext, params: PythonParams) -> Exit:
        script = write_program(context.work_dir, "script.py", params.script)
        interpreter = params.interpreter or sys.executable
        return await context.run_process([interpreter, "-u", str(script), *params.arguments])

"""PYTHON: a program for a Python interpreter."""

import sys
from typing import Literal, Self

from pydantic import Field, model_validator

from shoal.core.task_types import Exit, Settling, TaskContext, TaskParams, TaskType
from shoal.worker.types.program import (
    Arguments,
    Plain,
    Program,
    ProgramFile,
    program,
    require_one,
)
from shoal.worker.types.spark import connect


class PythonParams(TaskParams):
    """What a PYTHON task runs.

    Parameters are environment variables (``os.environ["SHOAL_PARAM_DATE"]``), and all of them are
    in the JSON file that ``SHOAL_PARAMETERS`` names; they are never pasted into the text.
    """

    script: Program | None = Field(
        default=None, description="The program. Its exit status decides: 0 is success."
    )
    file: ProgramFile = None
    arguments: Arguments = ()
    interpreter: Plain = Field(
        default="",
        description="A Python on the worker: a path, or a name on its PATH such as python3.12. "
        "Empty: the Python of the environment, else the worker's own Python, with the packages "
        "that are installed beside it.",
    )
    spark: Literal["", "connect"] = Field(
        default="",
        description="connect: SparkSession.builder.getOrCreate() is a session at the Spark Connect "
        "server that the worker keeps for the project. Needs PySpark in the interpreter.",
    )

    @model_validator(mode="after")
    def _one_program(self) -> Self:
        require_one(self.script, self.file)
        return self


class Python(TaskType[PythonParams]):
    """Runs a Python program as a file in the attempt's own folder, its output unbuffered."""

    Params = PythonParams

    async def run(self, context: TaskContext, params: PythonParams) -> Exit:
        script = program(context.work_dir, "script.py", params.script, params.file)
        interpreter = params.interpreter or context.python or sys.executable
        env: dict[str, str] = {}
        if params.spark:
            env = connect.variables(await context.spark_connect(), context.tag, context.attempt)
        return await context.run_process(
            [interpreter, "-u", str(script), *params.arguments], env=env
        )

    def settling(self, context: TaskContext, params: PythonParams) -> Settling | None:
        """See TaskType."""
        return connect.settling(context, self, params) if params.spark else None

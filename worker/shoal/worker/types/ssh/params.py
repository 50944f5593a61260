"""What an SSH task is told. Imported by the API and the command line, so it imports little."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from shoal.core.task_types import SourceName, TaskParams
from shoal.worker.types.program import Program, ProgramFile, require_one

KINDS = frozenset({"ssh"})


class SshParams(TaskParams):
    """What an SSH task runs, and where.

    Parameters and secrets reach the script as environment variables, as in a SHELL task. What it
    writes to the file ``$SHOAL_OUTPUT`` becomes outputs.
    """

    data_source: Annotated[str, SourceName(kinds=KINDS)] = Field(
        min_length=1, description="Name of a data source of the kind ssh."
    )
    script: Program | None = Field(
        default=None, description="The script. Its exit status decides: 0 is success."
    )
    file: ProgramFile = None
    interpreter: Literal["sh", "bash"] = Field(
        default="sh", description="Found on the PATH of the other host."
    )

    @model_validator(mode="after")
    def _one_program(self) -> Self:
        require_one(self.script, self.file)
        return self

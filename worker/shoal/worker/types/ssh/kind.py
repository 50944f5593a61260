"""The task type SSH, its fields, and the kind of its hosts. The API imports it."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from shoal.core.data_sources.kind import FieldNeed, Seconds, SourceKind, SourceOptions
from shoal.core.task_types import SourceName, TaskParams
from shoal.worker.types.child.kind import ChildType
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


class Ssh(ChildType[SshParams]):
    """Runs a script on another host; nothing of it is left there when the attempt has ended."""

    Params = SshParams
    work = "shoal.worker.types.ssh.run:run"
    settles = True


class SshOptions(SourceOptions):
    """Options of a host."""

    host_key: (
        Annotated[
            str, Field(pattern=r"^(ssh|ecdsa)-[a-z0-9-]{3,30} [A-Za-z0-9+/=]{20,4096}( [ -~]*)?$")
        ]
        | None
    ) = Field(
        default=None,
        description="Public key of the host, such as ssh-ed25519 AAAA…, which identifies it. "
        "Without it tasks cannot sign in; testing the data source shows the key.",
    )
    connect_timeout: Seconds = Field(default=10, description="Seconds to connect and sign in.")


class SshHost(SourceKind):
    """A host that SSH tasks and WAIT_FILE sign in to."""

    title = "SSH"
    Options = SshOptions
    probe = "shoal.worker.types.ssh.host:probe"
    port = 22
    database = FieldNeed.NONE
    credential = "password or private key"

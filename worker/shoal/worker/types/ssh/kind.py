"""SSH: a script on a host of the project's data sources, and the kind of such a host."""

from typing import Annotated

from pydantic import Field

from shoal.core.data_sources.kind import FieldNeed, Seconds, SourceKind, SourceOptions
from shoal.worker.types.child.kind import ChildType
from shoal.worker.types.ssh.params import SshParams


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

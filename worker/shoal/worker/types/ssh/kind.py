"""SSH: a script on a host of the project's data sources."""

from shoal.worker.types.child.kind import ChildType
from shoal.worker.types.ssh.params import SshParams


class Ssh(ChildType[SshParams]):
    """Runs a script on another host; nothing of it is left there when the attempt has ended."""

    Params = SshParams
    work = "shoal.worker.types.ssh.run:run"
    settles = True

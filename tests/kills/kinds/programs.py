"""Programs: SHELL and PYTHON on the workers, SSH at a host."""

from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from typing import Any

from shoal.core.data_sources import DataSource
from tests.kills.kinds.kind import Ledgered
from tests.kills.plan import Case
from tests.kills.sides.local import LocalSide
from tests.kills.sides.side import Side
from tests.support.servers import sshd

# What outlives its script unless somebody ends it, and does not hear of SIGTERM.
_STUBBORN_SHELL = """trap '' TERM
(setsid sleep 600 >/dev/null 2>&1 &)
"""
_SHELL = """set -eu
echo "begin $SHOAL_TASK_INSTANCE_ID" >> {ledger}
{stubborn}sleep {seconds}
echo "end $SHOAL_TASK_INSTANCE_ID" >> {ledger}
"""
_STUBBORN_PYTHON = """import signal, subprocess
signal.signal(signal.SIGTERM, signal.SIG_IGN)
subprocess.Popen(["sleep", "600"], start_new_session=True)
"""
_PYTHON = """import os, time
def say(word):
    with open({ledger!r}, "a") as file:
        file.write(word + " " + os.environ["SHOAL_TASK_INSTANCE_ID"] + "\\n")
say("begin")
{stubborn}time.sleep({seconds})
say("end")
"""


class Shell(Ledgered):
    """A SHELL task."""

    name, label = "SHELL", "SHELL"

    def task(self, case: Case) -> Mapping[str, Any]:
        """See Kind."""
        return {"type": "SHELL", "params": {"script": self.script(case)}}

    def script(self, case: Case) -> str:
        """Return the program of a case."""
        stubborn = _STUBBORN_SHELL if case.stubborn else ""
        return _SHELL.format(ledger=self.ledger(case), seconds=case.seconds, stubborn=stubborn)


class Python(Ledgered):
    """A PYTHON task."""

    name, label = "PYTHON", "PYTHON"

    def task(self, case: Case) -> Mapping[str, Any]:
        """See Kind."""
        stubborn = _STUBBORN_PYTHON if case.stubborn else ""
        ledger = str(self.ledger(case))
        script = _PYTHON.format(ledger=ledger, seconds=case.seconds, stubborn=stubborn)
        return {"type": "PYTHON", "params": {"script": script}}


class Ssh(Shell):
    """An SSH task at a real sshd of this machine."""

    name, label = "SSH", "SSH"
    launch_s = 1.5

    async def serve(self, stack: AsyncExitStack) -> Side:
        """See Kind."""
        self._served = stack.enter_context(sshd.served(self.folder))
        return LocalSide(remote=True)

    def sources(self) -> Sequence[DataSource]:
        """See Kind."""
        return [self._served.source]

    def task(self, case: Case) -> Mapping[str, Any]:
        """See Kind."""
        params = {"data_source": "farm", "script": self.script(case)}
        return {"type": "SSH", "params": params}

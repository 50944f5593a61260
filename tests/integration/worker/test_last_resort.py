"""What the kernel does for us when every process that watches over a task is dead."""

import sys

from shoal.worker.attempt import Outcome
from shoal.worker.launching import Launcher
from tests.integration.worker.attempt_site import Site

PR_GET_PDEATHSIG = 2
ASK = f"""\
import ctypes
number = ctypes.c_int()
assert ctypes.CDLL(None).prctl({PR_GET_PDEATHSIG}, ctypes.byref(number), 0, 0, 0) == 0
print(number.value)
"""


async def test_program_is_killed_by_the_kernel_when_its_launcher_dies(
    launcher: Launcher, site: Site
) -> None:
    launched = await launcher.launch(site.request("a", sys.executable, "-S", "-c", ASK))
    assert (await launched.wait()).outcome is Outcome.SUCCEEDED
    assert site.log("a") == b"9\n"

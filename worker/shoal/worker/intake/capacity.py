"""How many tasks this machine lets a worker run at once: its descriptors and processes."""

from pathlib import Path

import structlog

from shoal.core.errors import ShoalError
from shoal.runtime.limits.descriptors import descriptor_limit

log = structlog.get_logger()

# A slot needs a shim and a program, and a filter if the task uses secrets; two pipes to the shim
# and one to the filter are open in the launcher.
PROCESSES, DESCRIPTORS = 3, 3
OWN_PROCESSES, OWN_DESCRIPTORS = 16, 128  # of agent, launcher and watchdog, with their threads


class TooFewResources(ShoalError):
    """The machine's limits do not allow a single task."""


def fitting_slots(slots: int, cgroups: Path = Path("/sys/fs/cgroup")) -> int:
    """Return ``slots``, or as many as there are descriptors and processes for.

    Raises TooFewResources.
    """
    limits = {"RLIMIT_NOFILE (ulimit -n)": (descriptor_limit(), OWN_DESCRIPTORS, DESCRIPTORS)}
    processes = _processes(cgroups, Path("/proc/self/cgroup").read_text())
    limits |= {name: (most, OWN_PROCESSES, PROCESSES) for name, most in processes.items()}
    for name, (most, own, each) in limits.items():
        room = (most - own) // each
        if room < 1:
            raise TooFewResources(
                f"{name} is {most}: too few for a worker, which needs {own} and {each} for each "
                "slot; raise it"
            )
        if room < slots:
            log.warning("fewer slots than wanted", slots=room, wanted=slots, limit=name, is_=most)
            slots = room
    return slots


def _processes(cgroups: Path, own: str) -> dict[str, int]:
    """Return the limits on the number of processes that hold for this one, by name.

    ``own`` is what /proc/self/cgroup says. RLIMIT_NPROC is not among them: it counts whatever else
    the user runs, and root is exempt. A worker that meets it pauses (``starts.py``).
    """
    found: dict[str, int] = {}
    for line in own.splitlines():
        _, controllers, path = line.split(":", 2)
        if controllers not in ("", "pids"):
            continue
        root = cgroups / controllers
        folder = root / path.lstrip("/")
        while folder.is_relative_to(root):
            file = folder / "pids.max"
            try:
                text = file.read_text().strip()
            except OSError:
                text = "max"  # the root has none; in a container the others may not be there
            if text.isdecimal():
                found[str(file)] = int(text)
            folder = folder.parent
    return found

"""Places for control groups in tests, where this machine lets us make some."""

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from shoal.worker.home.cgroups import Hierarchy
from shoal.worker.supervisor.cgroups import Cgroup

#: How attempts are killed: as trees of processes alone, or with a control group for each.
WAYS = ("tree", "group")


@contextmanager
def place(way: str) -> Iterator[Path | None]:
    """Yield a folder for ``Launcher(cgroup=…)``, None for the way "tree".

    At the end nothing of it may be left. Skips where no groups can be made.
    """
    if way == "tree":
        yield None
        return
    folder = Hierarchy.read().usable(f"shoal-test-{secrets.token_hex(8)}")
    if folder is None:
        pytest.skip("we may make no control groups (cgroup v2) on this machine")
    try:
        yield folder
        assert not folder.exists(), "groups were left behind"
    finally:
        Cgroup(str(folder)).clear()


def group_of(pid: int) -> str:
    """Return the control group of a process, as the kernel names it."""
    lines = Path(f"/proc/{pid}/cgroup").read_text().splitlines()
    return next(line[3:] for line in lines if line.startswith("0::"))


def folder_of(group: str) -> Path:
    """Return the folder of a control group that is named as the kernel does."""
    root = Hierarchy.read().root
    assert root is not None
    return root / group.lstrip("/")


def groups_in(group: Path) -> list[Path]:
    """Return the groups directly below that one."""
    return [entry for entry in group.iterdir() if entry.is_dir()]


def members(group: Path) -> set[int]:
    """Return the numbers of the processes in that group."""
    return {int(pid) for pid in (group / "cgroup.procs").read_text().split()}

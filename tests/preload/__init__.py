"""A library for tests that lets the wall clock of running processes jump (clock_shift.c)."""

import subprocess
from collections.abc import Mapping
from pathlib import Path

_SOURCE = Path(__file__).with_name("clock_shift.c")
_ALL = "all"


class ClockShift:
    """Shifts the wall clocks of processes that were started with ``environment``.

    ``folder`` is for its files; the loader takes no spaces in its path. Needs a C compiler.
    """

    def __init__(self, folder: Path) -> None:
        assert not set(str(folder)) & set(" :"), f"{folder} cannot be preloaded from"
        self._folder = folder / "clock-shift"
        self._folder.mkdir()
        self._library = folder / "clock_shift.so"
        command = ["cc", "-O1", "-Wall", "-Werror", "-shared", "-fPIC", str(_SOURCE)]
        subprocess.run([*command, "-o", str(self._library), "-ldl"], check=True)

    @property
    def environment(self) -> Mapping[str, str]:
        """What a process needs whose clock is to be shifted later."""
        return {"LD_PRELOAD": str(self._library), "SHOAL_TEST_CLOCK_SHIFT": str(self._folder)}

    def shift(self, by_s: float, pid: int | None = None) -> None:
        """Let the clock of one process, or of all, show ``by_s`` seconds more than it is."""
        name = _ALL if pid is None else str(pid)
        # Renamed into place: nobody reads half of it.
        new = self._folder / f".{name}"
        new.write_text(str(int(by_s * 1e9)))
        new.rename(self._folder / name)

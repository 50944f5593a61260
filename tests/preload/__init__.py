"""Libraries for tests that change what running processes see: their clock, the time of a sync."""

import subprocess
from collections.abc import Mapping
from pathlib import Path

_HERE = Path(__file__).parent
_ALL = "all"


class ClockShift:
    """Shifts the wall clocks of processes that were started with ``environment``.

    ``folder`` is for its files; the loader takes no spaces in its path. Needs a C compiler.
    """

    def __init__(self, folder: Path) -> None:
        self._library = _compiled(folder, "clock_shift")
        self._folder = folder / "clock-shift"
        self._folder.mkdir()

    @property
    def environment(self) -> Mapping[str, str]:
        """What a process needs whose clock is to be shifted later."""
        return {"LD_PRELOAD": str(self._library), "SHOAL_TEST_CLOCK_SHIFT": str(self._folder)}

    def shift(self, by_s: float, pid: int | None = None) -> None:
        """Let the clock of one process, or of all, show ``by_s`` seconds more than it is."""
        _replace(self._folder / (_ALL if pid is None else str(pid)), by_s)


class SlowSync:
    """Delays each fsync of the processes that were started with ``environment``; syncs nothing.

    ``folder`` is for its files; the loader takes no spaces in its path. Needs a C compiler.
    """

    def __init__(self, folder: Path) -> None:
        self._library = _compiled(folder, "slow_sync")
        self._folder = folder / "slow-sync"
        self._folder.mkdir()

    @property
    def environment(self) -> Mapping[str, str]:
        """What a process needs whose disk is to be slow later."""
        return {"LD_PRELOAD": str(self._library), "SHOAL_TEST_SLOW_SYNC": str(self._folder)}

    def delay(self, by_s: float) -> None:
        """Let each sync take so many seconds from now on."""
        _replace(self._folder / "delay", by_s)


def together(*environments: Mapping[str, str]) -> dict[str, str]:
    """Return an environment with several preloaded libraries."""
    merged = {name: value for each in environments for name, value in each.items()}
    if libraries := [each["LD_PRELOAD"] for each in environments if "LD_PRELOAD" in each]:
        merged["LD_PRELOAD"] = " ".join(libraries)
    return merged


def _compiled(folder: Path, name: str) -> Path:
    assert not set(str(folder)) & set(" :"), f"{folder} cannot be preloaded from"
    library = folder / f"{name}.so"
    command = ["cc", "-O1", "-Wall", "-Werror", "-shared", "-fPIC", str(_HERE / f"{name}.c")]
    subprocess.run([*command, "-o", str(library), "-ldl"], check=True)
    return library


def _replace(file: Path, seconds: float) -> None:
    # Renamed into place: a reader never finds half of it.
    new = file.with_name(f".{file.name}")
    new.write_text(str(int(seconds * 1e9)))
    new.rename(file)

"""Samples of running Python processes, by py-spy: which functions use the processor."""

import shutil
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

_NO_FUNCTIONS = ("process ", "thread ")
RATE = 200  # samples a second
_OPTIONS = (
    "--gil",
    "--threads",
    "--nonblocking",
    "--format",
    "raw",
    "--duration",
    "3600",
    "-o",
)
_NOT_FOUND = (
    "py-spy is not installed; it is one of the test tools: make .venv/dev, or pip install py-spy"
)


@dataclass(frozen=True)
class Samples:
    """Of one process: how often each function was seen, at the top of a stack or anywhere in it."""

    total: int
    own: Counter[str]
    inclusive: Counter[str]


class Sampler:
    """Samples one process from its making to ``stop``, the time on the processor only.

    ``family``: those that it starts as well, as far as they are Python.
    """

    def __init__(self, pid: int, output: Path, *, family: bool = False) -> None:
        program = Path(sys.executable).with_name("py-spy")
        found = str(program) if program.exists() else shutil.which("py-spy")
        if found is None:
            raise SystemExit(_NOT_FOUND)
        self._output = output
        options = [*(["--subprocesses"] if family else []), *_OPTIONS, str(output)]
        self._process = subprocess.Popen(
            [found, "record", "--pid", str(pid), "--rate", str(RATE), *options],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    def stop(self) -> Samples:
        """End, and return what was seen."""
        self._process.send_signal(signal.SIGINT)
        self._process.wait(60)
        if not self._output.exists():  # the process was never seen at work
            return read(())
        return read(self._output.read_text(encoding="utf-8").splitlines())


def read(lines: Iterable[str]) -> Samples:
    """Read py-spy's raw format: ``outermost;…;innermost count`` on each line."""
    own: Counter[str] = Counter()
    inclusive: Counter[str] = Counter()
    total = 0
    for line in lines:
        stack, _, number = line.rpartition(" ")
        frames = [_function(f) for f in stack.split(";") if not f.startswith(_NO_FUNCTIONS)]
        count = int(number)
        total += count
        if not frames:
            continue
        own[frames[-1]] += count
        for name in set(frames):
            inclusive[name] += count
    return Samples(total, own, inclusive)


def _function(frame: str) -> str:
    """Return ``function (file)`` without the line."""
    return frame.rpartition(":")[0] + ")" if ":" in frame else frame

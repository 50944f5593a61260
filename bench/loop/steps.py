"""Which step of an event loop held it, and where: judged by the processor time of its thread.

A step is what the loop runs between two looks at what is ready. Other work on the machine makes
it late, but no longer. Garbage is collected in whichever thread needs memory, while all others
stand still; so collections are noted by themselves.
"""

import asyncio
import gc
import sys
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any
from unittest import mock

from bench.support.machine import CHECKOUT

LONG_MS = 10.0  # steps that are told
_SAMPLED_MS = 5.0  # from then on a step's place is looked for
_LOOK_S = 0.002
_DEPTH = 4  # frames of our own that name a place
_ROOT = str(CHECKOUT)


@dataclass
class Step:
    """One step: milliseconds of processor time, and where it was seen."""

    phase: str
    cpu_ms: float
    wall_ms: float
    what: str
    collected_ms: float  # of ``cpu_ms``: collecting garbage
    places: Counter[str] = field(default_factory=Counter)

    @property
    def place(self) -> str:
        """Where it was seen most often."""
        return self.places.most_common(1)[0][0] if self.places else self.what


class Steps:
    """Watches the loop of one thread; what it found is read when that is over."""

    def __init__(self) -> None:
        self.long: list[Step] = []
        self.longest_ms: defaultdict[str, float] = defaultdict(float)  # by phase
        self.collection_ms: defaultdict[str, float] = defaultdict(float)  # the longest, by phase
        self.phase = "start"
        self._thread = threading.get_ident()
        self._clock = time.pthread_getcpuclockid(self._thread)
        self._began_s: float | None = None  # of the step under way
        self._places: Counter[str] = Counter()
        self._collected_ms = 0.0  # within the step
        self._collecting_s = 0.0
        self._over = threading.Event()
        self._watch = threading.Thread(target=self._look, name="steps", daemon=True)

    def run(self, handle: asyncio.Handle, step: Any) -> None:
        """Run a callback of a loop, and note how long it took."""
        if threading.get_ident() != self._thread:
            step(handle)
            return
        wall_s = time.monotonic()
        self._places, self._collected_ms = Counter(), 0.0
        began_s = self._began_s = time.thread_time()
        try:
            step(handle)
        finally:
            cpu_ms = (time.thread_time() - began_s) * 1e3
            self._began_s = None
            phase = self.phase
            self.longest_ms[phase] = max(cpu_ms, self.longest_ms[phase])
            if cpu_ms >= LONG_MS:
                wall_ms = (time.monotonic() - wall_s) * 1e3
                what = repr(handle._callback)  # type: ignore[attr-defined]
                self.long.append(
                    Step(phase, cpu_ms, wall_ms, what, self._collected_ms, self._places)
                )

    def collected(self, moment: str, _: dict[str, int]) -> None:
        """Note a collection of garbage. Called by whichever thread does it."""
        if moment == "start":
            self._collecting_s = time.thread_time()
            return
        took_ms = (time.thread_time() - self._collecting_s) * 1e3
        self.collection_ms[self.phase] = max(took_ms, self.collection_ms[self.phase])
        if threading.get_ident() == self._thread:
            self._collected_ms += took_ms

    def _look(self) -> None:
        """Look where a long step is."""
        while not self._over.is_set():
            time.sleep(_LOOK_S)
            began_s = self._began_s or 0.0
            if not began_s or (time.clock_gettime(self._clock) - began_s) * 1e3 < _SAMPLED_MS:
                continue
            if (frame := sys._current_frames().get(self._thread)) is not None:
                self._places[_place(frame)] += 1

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Look while the block lasts."""
        self._watch.start()
        gc.callbacks.append(self.collected)
        try:
            yield
        finally:
            gc.callbacks.remove(self.collected)
            self._over.set()
            self._watch.join()


def _place(frame: FrameType | None) -> str:
    """Return our own functions on the stack, the innermost first, and what runs in it."""
    found: list[str] = []
    while frame is not None and len(found) < _DEPTH:
        code = frame.f_code
        is_ours = code.co_filename.startswith(_ROOT) and ".venv" not in code.co_filename
        if is_ours or not found:
            name = "/".join(Path(code.co_filename).parts[-2:])
            found.append(f"{name}:{frame.f_lineno} {code.co_name}")
        frame = frame.f_back
    return " < ".join(found)


@contextmanager
def watching_steps() -> Iterator[Steps]:
    """Watch asyncio's own loop in this thread while the block lasts."""
    steps = Steps()
    step: Any = asyncio.Handle._run

    def watched(handle: asyncio.Handle) -> None:
        steps.run(handle, step)

    with mock.patch.object(asyncio.Handle, "_run", watched), steps.watching():
        yield steps

"""What long collections of garbage leave is not looked through again, but for once an hour."""

import gc
import time

import pytest

from shoal.client.local import process
from shoal.client.local.process import GarbageCollector, no_collections


class Python:
    """Its collector and its clocks, of which this test is the master."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.done: list[str] = []
        self.used_s = self.now_s = 0.0
        monkeypatch.setattr(gc, "freeze", lambda: self.done.append("freeze"))
        monkeypatch.setattr(gc, "unfreeze", lambda: self.done.append("unfreeze"))
        monkeypatch.setattr(time, "thread_time", lambda: self.used_s)
        monkeypatch.setattr(time, "monotonic", lambda: self.now_s)
        self.collector = GarbageCollector()

    def collect(self, generation: int, took_s: float) -> list[str]:
        """Collect; return what was done about it."""
        self.done.clear()
        self.collector("start", {"generation": generation})
        self.used_s += took_s
        self.collector("stop", {"generation": generation})
        return list(self.done)


@pytest.fixture
def python(monkeypatch: pytest.MonkeyPatch) -> Python:
    return Python(monkeypatch)


def test_survivors_of_a_long_collection_are_frozen(python: Python) -> None:
    assert python.collect(2, 0.001) == []
    assert python.collect(1, 0.5) == []  # not all that survives it is there to stay
    assert python.collect(2, 0.02) == ["freeze"]


def test_once_in_a_while_everything_is_looked_through(python: Python) -> None:
    python.now_s = process._THOROUGH_S + 1
    assert python.collect(2, 0.02) == ["freeze", "unfreeze"]
    assert python.collect(0, 0.02) == []
    assert python.collect(2, 0.5) == ["freeze"]  # whatever it found, and not again at once
    assert python.collect(2, 0.02) == ["freeze"]


def test_imports_are_not_interrupted_by_collections_and_later_code_is() -> None:
    seen: list[bool] = []

    def interrupted_import() -> None:
        with no_collections():
            seen.append(gc.isenabled())
            raise ImportError

    with pytest.raises(ImportError):
        interrupted_import()
    assert (seen, gc.isenabled()) == ([False], True)

"""Libraries without their optional parts: these are hidden during the first import only."""

import importlib
import sys
from types import ModuleType

import pytest

from shoal.client import libraries


@pytest.fixture
def unused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Structlog as before its first use, and rich not loaded."""
    monkeypatch.delitem(vars(libraries), "structlog", raising=False)
    monkeypatch.delitem(sys.modules, "rich", raising=False)


@pytest.mark.usefixtures("unused")
def test_the_part_is_hidden_only_at_the_first_use(monkeypatch: pytest.MonkeyPatch) -> None:
    hidden: list[bool] = []

    def load(name: str) -> ModuleType:
        hidden.append("rich" in sys.modules)
        return importlib.import_module(name)

    monkeypatch.setattr(libraries, "import_module", load)
    assert libraries.structlog is sys.modules["structlog"]
    assert libraries.structlog is sys.modules["structlog"]
    assert hidden == [True]
    assert "rich" not in sys.modules


@pytest.mark.usefixtures("unused")
def test_two_threads_may_use_a_library_for_the_first_time(monkeypatch: pytest.MonkeyPatch) -> None:
    def load(name: str) -> ModuleType:
        del sys.modules["rich"]  # as the other thread does when it is done
        return importlib.import_module(name)

    monkeypatch.setattr(libraries, "import_module", load)
    assert libraries.structlog is sys.modules["structlog"]

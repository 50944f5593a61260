"""How the session of the jobs is set."""

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest

from shoal.insight.jobs import session


@pytest.fixture(autouse=True)
def as_in_a_new_process() -> Iterator[None]:
    session._folder_of_sockets.cache_clear()
    yield
    session._folder_of_sockets.cache_clear()


def test_sockets_have_a_folder_with_a_short_name_wherever_a_task_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    deep = tmp_path / ("data-of-a-worker" * 5)
    deep.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(deep))
    folder = session._folder_of_sockets()
    assert folder is not None
    assert len(f"{folder}/.{uuid4()}.sock") <= 107
    assert Path(folder).stat().st_mode & 0o777 == 0o700
    assert session._folder_of_sockets() == folder, "Java keeps to the first one"
    assert session._settings_of_one_machine(folder)["spark.python.unix.domain.socket.dir"] == folder


def test_what_a_killed_process_has_left_goes(monkeypatch: pytest.MonkeyPatch) -> None:
    with tempfile.TemporaryDirectory(prefix="s-", dir="/tmp") as place:
        monkeypatch.setattr(tempfile, "tempdir", place)
        left = Path(place, ".staging-left")
        left.mkdir()
        (left / "lock").touch()
        (left / ".6a.sock").touch()
        folder = session._folder_of_sockets()
        assert folder is not None
        assert os.listdir(place) == [Path(folder).name]


def test_without_a_place_for_sockets_spark_goes_by_tcp(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "access", lambda *_: False)
    assert session._folder_of_sockets() is None
    assert not [name for name in session._settings_of_one_machine(None) if "unix" in name]

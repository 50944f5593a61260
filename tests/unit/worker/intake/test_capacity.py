"""Slots fit the machine's limits."""

import resource
from collections.abc import Iterator
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from shoal.runtime.limits.descriptors import raise_descriptor_limit
from shoal.worker.intake.capacity import (
    DESCRIPTORS,
    OWN_DESCRIPTORS,
    OWN_PROCESSES,
    PROCESSES,
    TooFewResources,
    _processes,
    fitting_slots,
)


@pytest.fixture
def limit() -> Iterator[int]:
    """A soft limit far below the hard one."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (OWN_DESCRIPTORS + 10 * DESCRIPTORS, before[1]))
    yield before[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, before)


def test_slots_are_as_many_as_descriptors_allow(limit: int, tmp_path: Path) -> None:
    assert fitting_slots(10, tmp_path) == 10
    with capture_logs() as logs:
        assert fitting_slots(11, tmp_path) == 10
    assert [(each["log_level"], each["wanted"]) for each in logs] == [("warning", 11)]


def test_the_limit_is_raised_and_the_old_one_told(limit: int, tmp_path: Path) -> None:
    assert raise_descriptor_limit() == OWN_DESCRIPTORS + 10 * DESCRIPTORS
    assert fitting_slots(11, tmp_path) == 11
    assert resource.getrlimit(resource.RLIMIT_NOFILE)[1] == limit


def test_too_few_for_one_slot_is_an_error_that_names_the_limit(limit: int, tmp_path: Path) -> None:
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (OWN_DESCRIPTORS, hard))
    with pytest.raises(TooFewResources, match=r"RLIMIT_NOFILE .* is 128: too few .* raise it"):
        fitting_slots(4, tmp_path)


@pytest.mark.parametrize(
    ("own", "folder"), [("0::/a/b\n", "a/b"), ("5:cpu:/x\n4:pids:/a/b\n", "pids/a/b")]
)
def test_processes_are_counted_in_every_cgroup_above(own: str, folder: str, tmp_path: Path) -> None:
    inner = tmp_path / folder
    inner.mkdir(parents=True)
    (inner / "pids.max").write_text("max\n")
    (inner.parent / "pids.max").write_text("500\n")
    assert _processes(tmp_path, own) == {str(inner.parent / "pids.max"): 500}


def test_slots_are_as_many_as_processes_allow(tmp_path: Path) -> None:
    (tmp_path / "pids.max").write_text(f"{OWN_PROCESSES + 5 * PROCESSES}\n")
    own = Path("/proc/self/cgroup").read_text()
    if not any(line.startswith("0::") for line in own.splitlines()):
        (tmp_path / "pids").mkdir()
        (tmp_path / "pids.max").rename(tmp_path / "pids" / "pids.max")
    assert fitting_slots(100, tmp_path) == 5

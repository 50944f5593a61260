"""Where a worker finds control groups, and where it does without."""

from pathlib import Path

import pytest

from shoal.worker.home.cgroups import Hierarchy, group_name

UNIFIED = "30 23 0:26 / {root} rw,nosuid - cgroup2 cgroup2 rw,nsdelegate"
OLD = """\
31 23 0:27 / /sys/fs/cgroup ro,nosuid - tmpfs tmpfs ro,mode=755
33 31 0:29 / /sys/fs/cgroup/memory rw,nosuid - cgroup cgroup rw,memory"""
FILES = ("cgroup.procs", "cgroup.kill")


def hierarchy(mounts: str, own: str) -> Hierarchy:
    return Hierarchy(mounts, f"4:memory:/old\n{own}\n")


@pytest.mark.parametrize(
    ("mounts", "own", "found"),
    [
        (UNIFIED.format(root="/sys/fs/cgroup"), "0::/a.slice/b", "/sys/fs/cgroup/a.slice/b"),
        (UNIFIED.format(root="/sys/fs/cgroup"), "0::/", "/sys/fs/cgroup"),
        (
            f"{OLD}\n{UNIFIED.format(root='/sys/fs/cgroup/unified')}",
            "0::/a",
            "/sys/fs/cgroup/unified/a",
        ),
        ("30 23 0:26 /pod/c /c\\040g rw - cgroup2 none rw", "0::/pod/c/own", "/c g/own"),
        ("30 23 0:26 /pod/c /cg rw - cgroup2 none rw", "0::/pod/cousin", None),
        (UNIFIED.format(root="/sys/fs/cgroup"), "0::/../other", None),
        (UNIFIED.format(root="/sys/fs/cgroup"), "1:name=systemd:/", None),
        (OLD, "0::/a", None),
        ("", "", None),
    ],
    ids=[
        "below the top",
        "the top",
        "beside the old ones",
        "a part of it",
        "another part",
        "outside of our namespace",
        "no group",
        "only old ones",
        "nothing",
    ],
)
def test_own_group_is_found_where_it_is_mounted(mounts: str, own: str, found: str | None) -> None:
    assert hierarchy(mounts, own).own == (None if found is None else Path(found))


def here(own: Path) -> Hierarchy:
    return hierarchy(UNIFIED.format(root=own.parent), f"0::/{own.name}")


@pytest.fixture
def own(tmp_path: Path) -> Path:
    """A folder with the files of a group, for what is decided by reading them."""
    own = tmp_path / "own"
    own.mkdir()
    for file in FILES:
        (own / file).touch()
    return own


def test_folder_without_the_files_of_a_group_is_none(own: Path) -> None:
    """A kernel before 5.14 has no ``cgroup.kill``. The trial leaves nothing behind."""
    assert here(own).usable("shoal-1") is None
    assert {entry.name for entry in own.iterdir()} == set(FILES)


class Kernel:
    """Gives each new folder the files of a group, as the kernel does."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._mkdir, self._rmdir = Path.mkdir, Path.rmdir
        monkeypatch.setattr(Path, "mkdir", lambda path: self.make(path))
        monkeypatch.setattr(Path, "rmdir", lambda path: self.remove(path))

    def make(self, path: Path) -> None:
        self._mkdir(path)
        for file in FILES:
            (path / file).touch()

    def remove(self, path: Path) -> None:
        for file in FILES:
            (path / file).unlink()
        self._rmdir(path)


@pytest.mark.parametrize(
    ("limits", "usable"),
    [
        ({}, True),
        ({"memory.max": "max\n", "memory.high": "max\n", "cpu.max": "max 100000\n"}, True),
        ({"memory.max": "1073741824\n"}, False),
        ({"memory.high": "1073741824\n"}, False),
        ({"cpu.max": "50000 100000\n"}, False),
    ],
    ids=["no controllers", "no limits", "memory", "soft memory", "processors"],
)
def test_group_with_limits_gets_none_below_in_which_programs_would_not_see_them(
    own: Path, monkeypatch: pytest.MonkeyPatch, limits: dict[str, str], usable: bool
) -> None:
    for name, value in limits.items():
        (own / name).write_text(value)
    Kernel(monkeypatch)
    assert here(own).usable("shoal-1") == (own / "shoal-1" if usable else None)
    assert not (own / "shoal-1").exists()


def test_worker_that_its_own_former_attempt_has_started_leaves_its_groups_alone(
    own: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Kernel(monkeypatch)
    (own / "shoal-1").mkdir()
    inside = hierarchy(UNIFIED.format(root=own.parent), "0::/own/shoal-1/7-0")
    assert inside.kill_former("shoal-1", 0.0)
    assert (own / "shoal-1" / "cgroup.kill").read_text() == ""
    assert inside.usable("shoal-1") is None


def test_name_is_that_of_the_locked_file(tmp_path: Path) -> None:
    """Wherever it is seen from: two workers of a machine never have the same one."""
    (tmp_path / "one").touch()
    (tmp_path / "two").touch()
    (tmp_path / "link").hardlink_to(tmp_path / "one")
    names = []
    for name in ("one", "link", "two"):
        with (tmp_path / name).open() as file:
            names.append(group_name(file.fileno()))
    assert names[0] == names[1] != names[2]

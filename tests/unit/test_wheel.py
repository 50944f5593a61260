"""What a wheel has in it; the build backend lists the files, so nothing is built."""

from pathlib import Path

import pytest
from hatchling.builders.sdist import SdistBuilder
from hatchling.builders.wheel import WheelBuilder

from shoal.client.cli.cluster.demonstration import EXAMPLE
from tests.support.parts import PARTS, ROOT

MADE = {"__pycache__", "static"}
#: Files that programs read and that no import would miss.
DATA = {
    "shoal/alert/channels/SHOAL-ALERT-MIB.txt",
    "shoal/client/cli/cluster/example.yaml",
    "shoal/insight/workflows/daily.yaml",
    "shoal/proto/shoal.proto",
    "shoal/sql/migrations/script.py.mako",
}


def files_of(root: Path) -> set[str]:
    """Return the paths in a wheel that is built from ``root``."""
    return {file.distribution_path for file in WheelBuilder(str(root)).recurse_included_files()}


@pytest.fixture(scope="module")
def in_wheel() -> set[str]:
    return files_of(ROOT)


def test_every_file_of_every_part_is_in_the_wheel(in_wheel: set[str]) -> None:
    for part in sorted(PARTS):
        folder = ROOT / part
        written = {
            path.relative_to(folder).as_posix()
            for path in (folder / "shoal").rglob("*")
            if path.is_file() and not MADE.intersection(path.parts)
        }
        assert {name for name in in_wheel if name.startswith(f"shoal/{part}/")} >= written
        assert f"shoal/{part}/py.typed" in written


def test_files_that_programs_read_are_in_the_wheel(in_wheel: set[str]) -> None:
    assert in_wheel >= DATA
    assert f"shoal/client/cli/cluster/{EXAMPLE.name}" in DATA


def test_nothing_else_is_in_the_wheel(in_wheel: set[str]) -> None:
    assert {name.partition("/")[0] for name in in_wheel} == {"shoal"}
    assert {name.split("/")[1] for name in in_wheel} == PARTS
    assert not [name for name in in_wheel if "__pycache__" in name or name.endswith(".pyc")]


def test_the_web_ui_is_in_the_wheel_once_it_is_built(tmp_path: Path) -> None:
    """Git ignores what is built, so the backend would leave it out."""
    for name in ("pyproject.toml", "README.md", "LICENSE", ".gitignore"):
        (tmp_path / name).write_bytes((ROOT / name).read_bytes())
    pages = {"index.html", "assets/index-4f3a.js"}
    for name in pages:
        file = tmp_path / "api/shoal/api/static" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()
    assert {f"shoal/api/static/{name}" for name in pages} <= files_of(tmp_path)
    # Some tools build a wheel from an sdist.
    sdist = {file.relative_path for file in SdistBuilder(str(tmp_path)).recurse_included_files()}
    assert {f"api/shoal/api/static/{name}" for name in pages} <= sdist

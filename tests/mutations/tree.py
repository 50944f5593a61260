"""Copies of the working tree, and what makes Python use a copy instead of the original."""

import os
import shutil
import subprocess
from pathlib import Path

from tests.mutations.place import folders

ROOT = Path(__file__).parents[2]
# Of a surrounding test run: they would reach into ours.
_NOT_INHERITED = ("PYTEST_", "COV_", "COVERAGE_", "PYTHONPATH")


def copy_sources(target: Path) -> None:
    """Copy what git knows of the working tree, as it stands now, and what is new in it."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        check=True,
        capture_output=True,
    )
    for name in os.fsdecode(listed.stdout).split("\0"):
        if name and (ROOT / name).is_file():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, target / name)


def copy_tree(source: Path, target: Path) -> None:
    """Copy a copy. Both share their files and what is compiled: replace files, never rewrite."""
    shutil.copytree(source, target, symlinks=True, copy_function=os.link)


def revision() -> str:
    """Return the commit of the working tree, with a ``+`` if files of it have changed since."""
    described = ["git", "describe", "--always", "--abbrev=12", "--dirty=+", "--exclude=*"]
    return subprocess.run(
        described, cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout.strip()


def inherited() -> dict[str, str]:
    """Return our variables without those that would reach into the copy's tests."""
    return {k: v for k, v in os.environ.items() if not k.startswith(_NOT_INHERITED)}


def python_path(root: Path) -> str:
    """Return the PYTHONPATH with which all of Shoal and its tests come from ``root``."""
    return os.pathsep.join(map(str, folders(root)))

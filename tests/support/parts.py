"""The parts of the repository: the folders that hold a package of the namespace ``shoal``."""

from pathlib import Path

ROOT = Path(__file__).parents[2]
#: Names of folders, which are names of packages as well: "core" is ``core/shoal/core``.
PARTS = frozenset(
    package.parent.name
    for package in ROOT.glob("*/shoal/*/__init__.py")
    if package.parents[2].name == package.parent.name
)

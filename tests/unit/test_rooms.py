"""Every package is a room that can be taken in at a glance, and says what it is for."""

import ast
import re
import sys
from collections import Counter
from pathlib import Path

import pytest

from tests.support.parts import PARTS, ROOT

ROOMS = {
    ".".join(("shoal", part, *folder.relative_to(ROOT / part / "shoal" / part).parts)): folder
    for part in sorted(PARTS)
    for folder in (ROOT / part / "shoal" / part, *(ROOT / part / "shoal" / part).rglob("*/"))
    if folder.name not in {"__pycache__", "migrations", "versions", "static", "assets"}
}
MOST = 14  # modules and packages
MOST_TESTS = 16  # modules in a folder of tests
# A module for each kind of resource, in core a package for each part of the domain, in runtime a
# module for each thing that every process needs, in the worker a room for each concern,
# and one for each task type.
LARGER = {
    "shoal.api.routes": 22,
    "shoal.api.schemas": 16,
    "shoal.client.rest.operations.generated.calls": 32,  # one for each tag of the API
    "shoal.core": 17,
    "shoal.core.definition": 15,
    "shoal.runtime": 18,
    "shoal.worker": 15,
    "shoal.worker.types": 15,
}
MOST_ALIKE = 2  # names in a room with the same first word; more of them are a room of their own


def names(room: Path) -> list[str]:
    """Return the modules and packages that stand in a room."""
    return sorted(
        entry.stem
        for entry in room.iterdir()
        if (entry.suffix == ".py" and not entry.stem.startswith("__") and "_pb2" not in entry.stem)
        or (entry.is_dir() and entry.name not in {"__pycache__", "static"})
    )


def test_sizes_of_rooms(capsys: pytest.CaptureFixture[str]) -> None:
    sizes = {room: len(names(folder)) for room, folder in ROOMS.items()}
    with capsys.disabled():
        largest = sorted(sizes.items(), key=lambda item: (-item[1], item[0]))
        told = ", ".join(f"{room} {size}" for room, size in largest[:5])
        sys.stdout.write(f"\n{len(sizes)} rooms, the largest: {told}\n")
    assert {room: size for room, size in sizes.items() if size > LARGER.get(room, MOST)} == {}


def test_rooms_say_what_they_are_for() -> None:
    texts = {
        room: ast.get_docstring(ast.parse((folder / "__init__.py").read_text(encoding="utf-8")))
        for room, folder in ROOMS.items()
    }
    assert [room for room, text in texts.items() if not text or not text[0].isupper()] == []


def test_no_room_has_a_family_of_names_with_one_prefix() -> None:
    words = Counter((room, n.partition("_")[0]) for room, at in ROOMS.items() for n in names(at))
    assert {family: count for family, count in words.items() if count > MOST_ALIKE} == {}


def test_no_folder_of_tests_has_more_modules_than_can_be_taken_in_at_a_glance() -> None:
    modules = Counter(
        str(file.parent.relative_to(ROOT))
        for file in (ROOT / "tests").rglob("*.py")
        if file.name != "__init__.py"
    )
    assert {folder: count for folder, count in modules.items() if count > MOST_TESTS} == {}


def test_no_test_module_imports_another_one() -> None:
    """What tests share stands in ``tests/support`` or beside them, named by what it builds."""
    pattern = re.compile(
        r"^\s*(?:from|import) tests\.(?:\w+\.)*test_\w+|^\s*from tests\.?[\w.]* import test_", re.M
    )
    assert {
        f"{file.relative_to(ROOT)}: {found.group().strip()}"
        for file in (ROOT / "tests").rglob("*.py")
        for found in pattern.finditer(file.read_text(encoding="utf-8"))
    } == set()

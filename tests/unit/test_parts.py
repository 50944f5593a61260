"""Every list of the repository's parts names the parts that exist, or a stated subset of them."""

import ast
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from shoal.client.local.roles import ROLES
from tests.support.parts import PARTS, ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
#: Folders of the repository that are not parts; the tables of folders name them as well.
OTHERS = {"bench", "conf", "docs", "examples", "extras", "tests", "ui"}
INWARDS = (
    "Imports point inwards: client > roles > insight > coordination, sql, proto > runtime > core"
)
#: Parts that a contract of import-linter leaves out. A new contract that lists several parts lists
#: all of them or has an entry here.
LEFT_OUT = {
    "Roles never import each other": PARTS - set(ROLES),
    "Of insight roles import nothing but what asks for past runs": PARTS - set(ROLES),
    "Database drivers are for sql, and for the room of drivers in the process of a task": {"sql"},
    "Only the process of a task imports the room of drivers": {"worker"},  # it lists its rooms
    "Only coordination speaks to ZooKeeper": {"coordination"},
    "Only sql imports SQLAlchemy": {"sql"},
    "The supervisor needs the standard library alone": {"worker"},
}
MOST_LITERALS = 4  # names of parts in one literal; the roles are that many
_FOLDER = re.compile(r"`([a-z_]+)/`")


def test_parts_are_found_on_disk() -> None:
    assert {"core", *ROLES, "client"} < PARTS
    assert {folder.parent.name for folder in ROOT.glob("*/shoal")} == PARTS


def test_the_wheel_is_made_of_all_parts() -> None:
    build = PROJECT["tool"]["hatch"]["build"]
    assert sorted(build["targets"]["wheel"]["packages"]) == sorted(f"{p}/shoal" for p in PARTS)
    assert sorted(build["dev-mode-dirs"]) == sorted(PARTS)


def test_types_are_checked_in_all_parts() -> None:
    mypy = PROJECT["tool"]["mypy"]
    plugins = [str(file.parent.relative_to(ROOT)) for file in ROOT.glob("e*s/*/pyproject.toml")]
    assert sorted(mypy["mypy_path"].split(":")) == sorted([*PARTS, *plugins])
    assert sorted(mypy["files"]) == sorted([*PARTS, "bench", "examples", "extras", "tests"])


def test_imports_are_checked_in_all_parts() -> None:
    assert sorted(PROJECT["tool"]["importlinter"]["root_packages"]) == sorted(
        f"shoal.{part}" for part in PARTS
    )


def contracts() -> Iterator[tuple[str, set[str]]]:
    """Yield the name of each contract that lists parts, and the parts of the list."""
    for contract in PROJECT["tool"]["importlinter"]["contracts"]:
        for value in contract.values():
            words = " ".join(value).split() if isinstance(value, list) else ()
            named = {part for part in PARTS if f"shoal.{part}" in words}
            if len(named) > 1:
                yield contract["name"], named


CONTRACTS = dict(contracts())


@pytest.mark.parametrize("name", CONTRACTS)
def test_a_contract_names_all_parts_but_those_stated(name: str) -> None:
    assert CONTRACTS[name] == PARTS - LEFT_OUT.get(name, set())


def test_contracts_that_leave_parts_out_exist() -> None:
    assert set(LEFT_OUT) | {INWARDS} <= set(CONTRACTS)


def test_every_role_has_packages_of_its_own_and_all_of_them_run_locally() -> None:
    extras = PROJECT["project"]["optional-dependencies"]
    assert set(ROLES) <= set(extras)
    [local] = [one for one in extras["local"] if one.startswith("shoal[")]
    assert set(ROLES) <= set(local.removeprefix("shoal[").removesuffix("]").split(","))


@pytest.mark.parametrize("page", ["docs/architecture.md", "CONTRIBUTING.md"])
def test_table_of_folders_names_all_of_them(page: str) -> None:
    table = (ROOT / page).read_text(encoding="utf-8").split("\n| Folder |")[1].split("\n\n")[0]
    named = [name for row in table.splitlines() for name in _FOLDER.findall(row.split("|")[1])]
    assert sorted(named) == sorted(PARTS | OTHERS)
    assert all((ROOT / name).is_dir() for name in OTHERS)


def literals(file: Path) -> Iterator[tuple[int, set[str]]]:
    """Yield the line of each literal or call of a module and the parts that it names."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        match node:
            case ast.List(elts=found) | ast.Tuple(elts=found) | ast.Set(elts=found):
                pass
            case ast.Call(args=found):
                pass
            case _:
                continue
        words = {one.value for one in found if isinstance(one, ast.Constant)}
        yield node.lineno, {p for p in PARTS if words & {p, f"{p}/", f"{p}/shoal", f"shoal.{p}"}}


@pytest.mark.parametrize("folder", sorted(PARTS | OTHERS))
def test_no_module_lists_the_parts_by_hand(folder: str) -> None:
    """``tests.support.parts`` has the list."""
    quoted = re.compile(rf'"(?:shoal\.)?(?:{"|".join(sorted(PARTS))})(?:/(?:shoal)?)?"')
    found = [
        f"{file.relative_to(ROOT)}:{line}"
        for file in sorted((ROOT / folder).rglob("*.py"))
        if "node_modules" not in file.parts
        and len(set(quoted.findall(file.read_text(encoding="utf-8")))) > MOST_LITERALS
        for line, named in literals(file)
        if len(named) > MOST_LITERALS
    ]
    assert found == []

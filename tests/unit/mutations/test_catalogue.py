"""The catalogue is true: each mutation fits the code as it is, and names tests that exist."""

import re
from functools import cache

import pytest

from tests.mutations.catalogue import MUTATIONS
from tests.mutations.place import DoesNotApply
from tests.mutations.tree import ROOT


@cache
def functions_of(file: str) -> frozenset[str]:
    """Return the tests of a file, with those that it inherits of a contract in tests/support."""
    text = (ROOT / file).read_text()
    for module in re.findall(r"^from (tests\.support[\w.]*) import .*Contract", text, re.MULTILINE):
        text += (ROOT / module.replace(".", "/")).with_suffix(".py").read_text()
    return frozenset(re.findall(r"^ *(?:async )?def (\w+)", text, re.MULTILINE))


def test_names_are_unique() -> None:
    names = [each.name for each in MUTATIONS]
    assert len(set(names)) == len(names)


@pytest.mark.timeout(600)  # hundreds of modules are parsed
def test_every_mutation_fits_the_code_as_it_is() -> None:
    faults: list[str] = []
    for mutation in MUTATIONS:
        try:
            mutation.changed(ROOT)
        except DoesNotApply as error:
            faults.append(str(error))
    assert not faults, "\n".join(faults)


def test_killers_exist() -> None:
    killers = {killer for mutation in MUTATIONS for killer in mutation.killers}
    named = [(killer, *killer.partition("[")[0].split("::")) for killer in sorted(killers)]
    missing = [k for k, file, *_, name in named if name not in functions_of(file)]
    assert not missing
    assert all(mutation.killers for mutation in MUTATIONS)

"""The list of mutations is true: each fits the code as it is, and names tests that exist."""

import ast
from functools import cache

import pytest

from tests.mutations.catalogue import MUTATIONS
from tests.mutations.mutation import Mutation
from tests.mutations.tree import ROOT


@cache
def functions_of(file: str) -> frozenset[str]:
    module = ast.parse((ROOT / file).read_text())
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    return frozenset(node.name for node in module.body if isinstance(node, functions))


def test_names_are_unique() -> None:
    names = [each.name for each in MUTATIONS]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda each: each.name)
def test_mutation_fits_the_code_as_it_is(mutation: Mutation) -> None:
    mutation.check(ROOT)
    for edit in mutation.edits:
        assert edit.file.endswith(".py")
        ast.parse(edit.mutated(ROOT))


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda each: each.name)
def test_killers_exist(mutation: Mutation) -> None:
    assert mutation.killers
    for killer in mutation.killers:
        file, _, function = killer.partition("::")
        assert function.partition("[")[0] in functions_of(file), killer

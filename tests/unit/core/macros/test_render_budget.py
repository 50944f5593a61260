"""Rendering has a budget: what the texts of one task may cost a shared process."""

import contextlib
import gc
import time
from collections.abc import Callable
from datetime import UTC, datetime

import pytest

from shoal.core.macros.placeholders import (
    RENDER_CHARACTERS,
    RENDER_STEPS,
    InvalidMacro,
    Renderer,
    check,
    names,
)
from shoal.core.untrusted import Budget, OverBudget

BASE = datetime(2026, 1, 1, tzinfo=UTC)
LARGE = 600_000  # characters of an attack
# The usual text of the same length: a script whose lines use parameters.
USUAL = ("python load.py --day ${day} --table flights --target s3://bucket/\n" * 10_000)[:LARGE]

ATTACKS = {
    "parameters that are not closed": "${" * (LARGE // 2),
    "dates that are not closed": "$[" * (LARGE // 2),
    "dates that differ": "".join(f"$[yyyyMMdd+{n}]" for n in range(LARGE // 17)),
    "quotes inside a date": "$[" + "'" * LARGE,
    "closing brackets inside a parameter": "${" + "]" * LARGE,
    "escaped marks": "$${" * (LARGE // 3),
    "parameters one by one": "${x}" * (LARGE // 4),
    "parameters inside each other": ("${" * 31 + "}" * 31) * (LARGE // 93),
    "dollar signs": "$" * 8_000_000,
    "a product of fractions": "$[yyyyMMdd+" + "1/7*" * 115 + "1]" + "${x}" * 100_000,
}


def cpu_s(work: Callable[[], object]) -> float:
    gc.freeze()  # what earlier tests have left must not be collected on this account
    try:
        began_s = time.process_time()
        with contextlib.suppress(InvalidMacro):
            work()
        return time.process_time() - began_s
    finally:
        gc.unfreeze()


def usual_s() -> float:
    levels = [{"day": "$[yyyyMMdd-1]"}]
    return min(cpu_s(lambda: Renderer(BASE, levels).render(USUAL)) for _ in range(3))


@pytest.mark.parametrize("attack", ATTACKS)
def test_an_attack_costs_at_most_some_usual_texts(attack: str) -> None:
    text = ATTACKS[attack]
    levels = [{"big": text, "x": "y"}]
    assert cpu_s(lambda: Renderer(BASE, levels).value("big")) < 20 * usual_s() + 0.05
    assert cpu_s(lambda: (check(text), names(text))) < 40 * usual_s() + 0.05


def test_a_text_over_the_budget_is_refused_and_names_its_parameter() -> None:
    renderer = Renderer(BASE, [{"big": "${" * 300_000, "small": "1"}])
    with pytest.raises(InvalidMacro, match=r"value of parameter 'big'.*150,000") as caught:
        renderer.value("big")
    assert "resource or by URL" in str(caught.value)


def test_all_texts_of_a_task_share_one_budget_and_the_costliest_is_named() -> None:
    text = "${x}" * (RENDER_STEPS // 5)
    renderer = Renderer(
        BASE, [{"first": text, "second": text, "x": "y", "last": "${x}" * (RENDER_STEPS // 8)}]
    )
    renderer.value("first")
    renderer.value("second")
    with pytest.raises(InvalidMacro, match=r"value of parameter '(first|second)'"):
        renderer.value("last")


def test_definitions_that_double_each_other_stop_at_the_budget_of_characters() -> None:
    doubling = {f"p{n}": f"${{p{n - 1}}}" * 2 for n in range(1, 40)} | {"p0": "x" * 1_000}
    with pytest.raises(InvalidMacro, match=f"longer than {RENDER_CHARACTERS:,} characters"):
        Renderer(BASE, [doubling]).value("p39")


def test_many_large_values_stop_at_the_budget_of_characters() -> None:
    many = {f"p{n}": "${big}" for n in range(100)} | {"big": "x" * 1_000_000}
    renderer = Renderer(BASE, [many])
    for name in list(many)[:16]:
        renderer.value(name)
    with pytest.raises(InvalidMacro, match=f"longer than {RENDER_CHARACTERS:,} characters"):
        renderer.value("p16")


def test_a_usual_large_text_is_rendered() -> None:
    assert Renderer(BASE, [{"day": "$[yyyyMMdd-1]"}]).render(USUAL).count("20251231") > 8_000


def test_a_large_text_without_placeholders_costs_no_steps() -> None:
    budget = Budget(0, 0)
    assert Renderer(BASE, [{}], budget=budget).render("{}" * 1_000_000) == "{}" * 1_000_000


def test_a_text_that_is_saved_has_a_bound_of_marks() -> None:
    assert "more than 150,000 placeholders" in check("${" * 300_000)[0]


def test_an_error_shows_a_part_of_a_long_expression() -> None:
    assert len(check(f"$[{'yyyy' * 100_000}]")[0]) < 1_000


def test_a_reference_to_many_secrets_costs_as_many_steps() -> None:
    secrets = "".join(f"${{secret.s{n}}}" for n in range(1_000))
    levels = [{"all": secrets}]
    renderer = Renderer(BASE, levels, lambda _: "x")
    with pytest.raises(InvalidMacro, match="steps"):
        renderer.render("${all}" * 10_000)


def test_what_is_spent_counts_for_the_surrounding_budget() -> None:
    whole = Budget(100, 100)
    Budget(80, 80, whole).spend(60, 10)
    with pytest.raises(OverBudget, match="100 steps"):
        Budget(80, 80, whole).spend(50)

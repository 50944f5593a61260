"""From what the witness wrote to a verdict: did the suite notice, and for the right reason?"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from tests.mutations.contained import TIME_IS_UP

# A mutation that ends like this has not removed a check: it has made nonsense of the code.
NONSENSE = frozenset(
    {
        "AttributeError",
        "ImportError",
        "IndentationError",
        "ModuleNotFoundError",
        "NameError",
        "SyntaxError",
        "TypeError",
        "UnboundLocalError",
    }
)


class Verdict(StrEnum):
    """What became of a mutation. Only KILLED is good."""

    KILLED = "killed"  # a test failed by what it saw
    SURVIVED = "SURVIVED"  # all tests passed: one is missing
    BROKEN = "BROKEN"  # the tests could not even be run, or failed on nonsense
    HUNG = "HUNG"  # no test failed in time
    UNPROVEN = "UNPROVEN"  # its tests fail without it, too, or do not run


class WrongCode(Exception):
    """The tests ran against other code than the copy's: nothing that they said counts."""


@dataclass(frozen=True)
class Outcome:
    """How one phase of a test ended. ``errors`` are the names of the exceptions, ungrouped.

    ``took_s``: all phases of the test together.
    """

    test: str
    phase: str  # collect, setup, call, teardown
    outcome: str  # passed, failed, skipped
    errors: tuple[str, ...]
    said: str
    took_s: float = 0.0

    @property
    def is_behaviour(self) -> bool:
        """Whether it failed by what the code did."""
        is_failure = self.outcome == "failed" and self.phase != "collect"
        return is_failure and bool(self.errors) and not NONSENSE.intersection(self.errors)


def read(report: Path) -> list[Outcome]:
    """Return what the witness saw; nothing if it did not live to tell. Raises WrongCode."""
    if not report.exists():
        return []
    found = json.loads(report.read_text())
    if found["foreign"]:
        raise WrongCode(f"not from the copy: {', '.join(found['foreign'])}")
    return [Outcome(**{**each, "errors": tuple(each["errors"])}) for each in found["tests"]]


def judge(exit_code: int, outcomes: Sequence[Outcome]) -> tuple[Verdict, str]:
    """Return the verdict and what it rests on, in words."""
    if exit_code == TIME_IS_UP:
        return Verdict.HUNG, "no test failed within the time limit"
    failures = [each for each in outcomes if each.outcome == "failed"]
    for each in failures:
        if each.is_behaviour:
            return Verdict.KILLED, f"{each.test}: {each.said}"
    if failures:
        return Verdict.BROKEN, f"{failures[0].test} ({failures[0].phase}): {failures[0].said}"
    if exit_code == 0 and outcomes:
        return Verdict.SURVIVED, "every test passed"
    return Verdict.BROKEN, f"pytest ended with status {exit_code} and no failure"


def not_passed(killers: Sequence[str], outcomes: Sequence[Outcome]) -> dict[str, str]:
    """Return those of ``killers`` that did not pass without any mutation, each with the reason."""
    bad: dict[str, str] = {}
    for killer in killers:
        own = _cases(killer, outcomes)
        worse = [each for each in own if each.outcome != "passed"]
        if worse:
            first = worse[0]
            bad[killer] = f"{first.test} {first.outcome} in {first.phase}: {first.said}"
        elif not own:
            bad[killer] = f"{killer} was not run: is there such a test?"
    return bad


def failed(killer: str, outcomes: Sequence[Outcome]) -> bool:
    """Return whether a case of ``killer`` was run and failed."""
    return any(each.outcome == "failed" for each in _cases(killer, outcomes))


def took_s(killer: str, outcomes: Sequence[Outcome]) -> float:
    """Return how long the slowest case of ``killer`` took."""
    return max((each.took_s for each in _cases(killer, outcomes)), default=0.0)


def _cases(killer: str, outcomes: Sequence[Outcome]) -> list[Outcome]:
    return [o for o in outcomes if o.test == killer or o.test.startswith(killer + "[")]

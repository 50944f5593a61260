"""The report lists offences, and a missed figure counts as missed."""

from dataclasses import replace

import pytest

from tests.chaos.judging.verdict import Kind, Offence, Verdict
from tests.chaos.records import FaultRecord
from tests.chaos.reports.figures import FIGURES, LOSS_DELAY, percentile
from tests.chaos.reports.report import RunInfo, is_met, render

INFO = RunInfo(seed=7, duration_s=90, session_timeout_s=2.0, commit="abc", machine="2 cores")
KILL = FaultRecord("kill-master", "master-1", 10.0, 11.0, 12.5, True, "died", taken_over_s=13.0)
CLEAN = Verdict([], {"instances": 12}, {LOSS_DELAY: [2.0, 2.5]})
R1 = FIGURES[0]


def test_times_of_faults_in_company_are_not_held_against_a_figure() -> None:
    crowded = replace(KILL, taken_over_s=99.0, recovered_s=98.0, alone=False)
    assert is_met(R1, CLEAN, [KILL, crowded], INFO)
    assert "| kill-master | 2 | 2 | p50 1.50 s, p99 1.50 s" in render(CLEAN, [KILL, crowded], INFO)


def test_offences_are_listed() -> None:
    offence = Offence(Kind.LOST, "acknowledged command", "gone", 3, "a", 2)
    text = render(Verdict([offence] * 101), [], INFO)
    assert "**101 offences**" in text
    assert text.count("- lost (acknowledged command): instance 3 a attempt 2 — gone") == 100
    assert "- and 1 more" in text


@pytest.mark.parametrize(
    ("verdict", "record"),
    [
        (CLEAN, replace(KILL, taken_over_s=15.1)),  # T + 3 s is 5 s
        (CLEAN, replace(KILL, recovered_s=None)),
        (Verdict([Offence(Kind.STUCK, "open instance", "still RUNNING")]), KILL),
    ],
    ids=["too slow", "never whole again", "an offence"],
)
def test_missed_figure_is_shown(verdict: Verdict, record: FaultRecord) -> None:
    assert is_met(R1, CLEAN, [KILL], INFO)
    assert not is_met(R1, verdict, [KILL, record], INFO)
    assert "**missed**" in render(verdict, [KILL, record], INFO)


def test_percentile_is_the_nearest_rank() -> None:
    values = [float(n) for n in range(100, 0, -1)]
    assert (percentile(values, 0.5), percentile(values, 0.99)) == (50.0, 99.0)
    assert percentile([3.0], 0.99) == 3.0
    assert percentile([1.0, 2.0], 1.0) == 2.0

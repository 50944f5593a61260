"""The report says what was measured, and a figure that is missed is shown as missed."""

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


def test_clean_run_is_reported_with_its_figures() -> None:
    text = render(CLEAN, [KILL, replace(KILL, bit=False)], INFO)
    assert "seed 7: **clean**, 2 faults, of which 1 bit, in 1.5 minutes" in text
    assert "| R1 |" in text
    assert "takeover p50 3.00 s, p99 3.00 s, max 3.00 s | 2 | 1 | met |" in text
    assert "| kill-master | 2 | 1 | p50 1.50 s" in text
    assert "0.50 –  1.00      2  ####" in text
    assert "| instances | 12 |" in text


def test_times_of_faults_in_company_are_not_held_against_a_figure() -> None:
    crowded = replace(KILL, taken_over_s=99.0, recovered_s=98.0, alone=False)
    assert is_met(R1, CLEAN, [KILL, crowded], INFO)
    assert "| kill-master | 2 | 2 | p50 1.50 s, p99 1.50 s" in render(CLEAN, [KILL, crowded], INFO)


def test_figure_without_a_time_does_not_pretend_to_have_one() -> None:
    crowded = replace(KILL, alone=False)
    assert "| takeover – | 1 | 1 | met, not timed |" in render(CLEAN, [crowded], INFO)
    swallowed = replace(crowded, name="swallow-claim")  # where no time is asked for
    assert "| recovery – | 1 | 1 | met |" in render(CLEAN, [swallowed], INFO)


def test_offences_are_listed() -> None:
    offence = Offence(Kind.LOST, "acknowledged command", "gone", 3, "a", 2)
    text = render(Verdict([offence] * 101), [], INFO)
    assert "**101 offences**" in text
    assert text.count("- lost (acknowledged command): instance 3 a attempt 2 — gone") == 100
    assert "- and 1 more" in text


def test_stall_of_the_machine_is_no_fault() -> None:
    stall = replace(KILL, name="machine-stall", began_s=50.0, healed_s=53.0)
    text = render(CLEAN, [KILL, stall], INFO)
    assert "**clean**, 1 faults" in text
    assert "stood still 1 times, 3.0 s together, at most 3.0 s" in text
    assert "| machine-stall |" not in text


def test_figure_without_a_fault_is_left_out() -> None:
    assert "| R1 |" not in render(CLEAN, [replace(KILL, name="kill-api")], INFO)


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


def test_figures_have_different_faults() -> None:
    names = [name for figure in FIGURES for name in figure.faults]
    for name in names:
        fault = replace(KILL, name=name)
        assert [f.id for f in FIGURES if f.records([fault])] == [
            f.id for f in FIGURES if name in f.faults
        ]


def test_percentile_is_the_nearest_rank() -> None:
    values = [float(n) for n in range(100, 0, -1)]
    assert (percentile(values, 0.5), percentile(values, 0.99)) == (50.0, 99.0)
    assert percentile([3.0], 0.99) == 3.0
    assert percentile([1.0, 2.0], 1.0) == 2.0

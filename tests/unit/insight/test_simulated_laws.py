"""What holds of every simulation, over random models, and where another reckoning says the same."""

import random
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from heapq import heapify, heappop, heappush
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shoal.coordination.queue.entry import QueueEntry
from shoal.core.decide import decide
from shoal.core.runs.events import TaskClaimed
from shoal.core.runs.run import Attempt, Run, WorkflowPlan
from shoal.insight.simulate.engine import workers
from shoal.insight.simulate.engine.arrivals import Arrival
from shoal.insight.simulate.engine.cluster import SimulatedCluster
from shoal.insight.simulate.engine.pool import Pool, Turn
from shoal.insight.simulate.model import Model, TaskHistory, WorkflowModel
from shoal.insight.simulate.result import simulate
from tests.unit.insight.models import MONDAY, arrival, model, played, question, workflow

POLICIES = ["allow", "queue", "queue_by_priority", "queue_latest", "skip_new", "replace"]
STRATEGIES = ["continue", "finish_running", "fail_fast", "ignore"]
PRIORITIES = ["HIGHEST", "MEDIUM", "LOWEST"]


@st.composite
def workflows(draw: st.DrawFn, name: str, *, calm: bool = False) -> WorkflowModel:
    """A workflow of a few tasks. ``calm``: nothing fails, is refused, or ends early."""
    count = draw(st.integers(1, 5))
    tasks: dict[str, dict[str, Any]] = {}
    history: dict[str, TaskHistory] = {}
    for index in range(count):
        before = draw(st.sets(st.integers(0, index - 1), max_size=2)) if index else set()
        tasks[f"t{index}"] = {
            "depends_on": [f"t{one}" for one in sorted(before)],
            "priority": draw(st.sampled_from(PRIORITIES)),
            "worker_group": draw(st.sampled_from(["default", "other"])),
            "concurrency_group": draw(st.sampled_from([None, None, "narrow"])),
            "delay": draw(st.sampled_from([0, 7])),
        }
        failure = 0.0
        if not calm:
            tasks[f"t{index}"] |= {
                "retries": draw(st.integers(0, 2)),
                "retry_delay": draw(st.sampled_from([0, 30])),
                "timeout": draw(st.sampled_from([None, None, 20.0])),
            }
            failure = draw(st.sampled_from([0.0, 0.3]))
        seconds = draw(st.lists(st.floats(0, 90), min_size=1, max_size=4))
        history[f"t{index}"] = TaskHistory(seconds=tuple(seconds), failure=failure)
    return workflow(
        name,
        tasks,
        history=history,
        priority=draw(st.sampled_from(PRIORITIES)),
        on_failure="continue" if calm else draw(st.sampled_from(STRATEGIES)),
        overlap="allow" if calm else draw(st.sampled_from(POLICIES)),
    )


@st.composite
def cases(draw: st.DrawFn, *, calm: bool = False) -> tuple[Model, list[Arrival]]:
    """A model with a few workflows, and runs of them within some minutes."""
    found = [draw(workflows(f"w{number}", calm=calm)) for number in range(draw(st.integers(1, 3)))]
    slots = {"default": draw(st.integers(1, 3)), "other": draw(st.integers(1, 3))}
    narrow = {"default/narrow": draw(st.integers(1, 2))}
    starts = draw(
        st.lists(
            st.tuples(st.integers(0, len(found) - 1), st.integers(0, 300)), min_size=1, max_size=12
        )
    )
    arrivals = [arrival(f"w{which}", at_s, number) for number, (which, at_s) in enumerate(starts)]
    return model(*found, slots=slots, concurrency=narrow), arrivals


def watched(simulated: Model, arrivals: Sequence[Arrival]) -> tuple[SimulatedCluster, list[str]]:
    """Play a case; return what was wrong whenever a slot was given."""
    over: list[str] = []
    plain = Pool.next

    def looked_at(pool: Pool, now: datetime) -> Turn | None:
        turn = plain(pool, now)
        if turn is not None:
            over.extend(_mistakes(pool, turn))
        return turn

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Pool, "next", looked_at)
        cluster, _ = played(simulated, arrivals)
    return cluster, over


def _mistakes(pool: Pool, turn: Turn) -> Iterator[str]:
    taken = pool.slots - pool.free
    if not 0 < taken <= pool.slots:
        yield f"{taken} of {pool.slots} slots of {pool.name}"
    if turn.wait_s < 0:
        yield f"{turn.task} waited {turn.wait_s} s"
    for before in turn.run.plan.upstream[turn.task]:
        if not turn.run.attempts[before].finished:
            yield f"{turn.task} began before the end of {before}"


@settings(max_examples=60, deadline=None)
@given(cases())
def test_slots_are_never_exceeded_and_no_task_begins_before_those_it_waits_for(case: Any) -> None:
    cluster, over = watched(*case)
    assert over == []
    for pool in (*cluster.groups.values(), *cluster.concurrency.values()):
        assert pool.most_taken <= pool.slots
        assert pool.still_waiting == 0  # a day is long enough for all of it
        assert pool.free == pool.slots
        assert all(hour.busy_s <= pool.slots * 3_600 + 1e-6 for hour in pool.hours)


@settings(max_examples=30, deadline=None)
@given(cases())
def test_claims_are_what_decide_makes_of_them(case: Any) -> None:
    """A claim is the one event that is not passed to ``decide``: at each one both are compared."""
    compared = 0
    plain = workers.claim

    def both(run: Run, attempt: Attempt) -> None:
        nonlocal compared
        compared += 1
        assert attempt.id is not None
        expected = copy_of(run)
        decision = decide(expected, TaskClaimed(attempt.id, workers.WORKER, MONDAY))
        expected.apply(decision)
        plain(run, attempt)
        assert (decision.actions, decision.messages, decision.state) == ((), (), None)
        assert run == expected

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(workers, "claim", both)
        cluster, _ = played(*case)
    assert compared == cluster.attempts


def copy_of(run: Run) -> Run:
    """A run of its own with the same attempts."""
    copy = replace(run, attempts=dict(run.attempts))
    assert copy == run
    return copy


@settings(max_examples=60, deadline=None)
@given(cases())
def test_every_run_is_counted_once_and_none_is_forgotten(case: Any) -> None:
    simulated, arrivals = case
    cluster, _ = played(simulated, arrivals)
    for name, notes in cluster.ledger.of.items():
        ended = notes.succeeded + notes.failed + notes.stopped + notes.unfinished
        assert notes.runs == ended
        assert notes.runs + notes.refused == sum(one.workflow == name for one in arrivals)
    assert sum(notes.unfinished for notes in cluster.ledger.of.values()) == 0


@settings(max_examples=40, deadline=None)
@given(cases(calm=True), st.integers(1, 40))
def test_work_is_conserved_whatever_the_slots(case: Any, more: int) -> None:
    """The slots' time is the sum of what the tasks take, with few slots and with many."""
    simulated, arrivals = case
    few, claims = played(simulated, arrivals)
    groups = {
        name: one.model_copy(update={"slots": one.slots + more})
        for name, one in simulated.groups.items()
    }
    many, _ = played(simulated.model_copy(update={"groups": groups}), arrivals)
    per_run = {one.name: len(one.definition.tasks) for one in simulated.workflows}
    assert len(claims.seen) == few.attempts == many.attempts
    assert few.attempts == sum(per_run[one.workflow] for one in arrivals)
    for name in simulated.groups:
        busy = [cluster.groups[name].busy_s if name in cluster.groups else 0.0
                for cluster in (few, many)]  # fmt: skip
        assert busy[0] == pytest.approx(busy[1], abs=1e-3)


@settings(max_examples=25, deadline=None)
@given(cases())
def test_the_same_seed_says_the_same(case: Any) -> None:
    simulated, arrivals = case
    one, claims = played(simulated, arrivals)
    other, again = played(simulated, arrivals)
    assert claims.seen == again.seen
    assert [list(pool.waits) for pool in one.groups.values()] == [
        list(pool.waits) for pool in other.groups.values()
    ]


def test_another_seed_draws_other_durations() -> None:
    one = workflow("w", {"a": {}}, {"a": [1, 100]}, cron="0 0 * * * ?")
    first, again, other = (simulate(model(one), question(seed=seed)) for seed in (1, 1, 2))
    assert first == again
    assert first.workflows[0].lasted != other.workflows[0].lasted


@settings(max_examples=60, deadline=None)
@given(
    st.integers(1, 4),
    st.lists(st.tuples(st.integers(0, 200), st.integers(1, 60)), min_size=1, max_size=25),
)
def test_waits_are_those_of_a_queue_that_serves_in_the_order_of_arrival(
    slots: int, jobs: list[tuple[int, int]]
) -> None:
    """One task for each run, of fixed lengths: reckoned from when servers are free."""
    jobs = sorted(jobs, key=lambda job: job[0])
    found = [workflow(f"w{i}", {"a": {}}, {"a": lasts}) for i, (_, lasts) in enumerate(jobs)]
    arrivals = [arrival(f"w{i}", at_s) for i, (at_s, _) in enumerate(jobs)]
    _, claims = played(model(*found, slots=slots), arrivals)
    servers = [0.0] * slots
    heapify(servers)
    expected = []
    for at_s, lasts in jobs:
        begins = max(float(at_s), heappop(servers))
        expected.append(begins - at_s)
        heappush(servers, begins + lasts)
    by_key = {key: wait_s for key, _, _, wait_s in claims.seen}
    assert [by_key[one.key] for one in arrivals] == pytest.approx(expected)


def test_the_queue_of_erlang_has_the_waits_that_theory_gives() -> None:
    """M/D/1 at 70 %: the mean wait is rho * s / (2 * (1 - rho)) (Pollaczek and Khinchine)."""
    length_s, share = 60.0, 0.7
    chance, at_s = random.Random(5), 0.0
    arrivals = []
    while at_s < 8 * 86_400:
        at_s += chance.expovariate(share / length_s)
        arrivals.append(arrival("w", at_s))
    one = workflow("w", {"a": {}}, {"a": length_s})
    cluster, claims = played(model(one, slots=1), arrivals, hours=9 * 24)
    mean_s = sum(claims.waits()) / len(claims.seen)
    assert len(claims.seen) > 7_500
    assert mean_s == pytest.approx(share * length_s / (2 * (1 - share)), rel=0.15)
    assert cluster.groups["default"].busy_s == pytest.approx(len(arrivals) * length_s)


def test_the_order_of_waiting_attempts_is_that_of_the_queue() -> None:
    """The places of a pool are those of entries: whatever sorts one way there does so here."""
    chance = random.Random(3)
    places = [
        (chance.randrange(5), chance.randrange(1, 9), chance.randrange(5), number)
        for number in range(1, 200)
    ]
    chance.shuffle(places)
    pool = Pool("default", len(places), MONDAY, MONDAY + timedelta(hours=1), 60.0)
    one = workflow("w", {"a": {}}, {"a": 1})
    cluster, _ = played(model(one), [])
    run = cluster._new_run(WorkflowPlan.of(one.definition), MONDAY, MONDAY, "UTC", None)
    for place in places:
        pool.put(place, "default/w", run, "a", MONDAY)
    given_out = []
    while (turn := pool.next(MONDAY)) is not None:
        given_out.append(turn.task_instance_id)
    entries = sorted(QueueEntry("default", *place, partition=0) for place in places)
    assert given_out == [entry.task_instance_id for entry in entries]


def test_what_is_added_changes_nothing_of_the_durations_of_others() -> None:
    one = workflow("w", {"a": {}}, {"a": [1, 50, 100]}, cron="0 0 * * * ?")
    other = workflow("v", {"a": {}}, {"a": [1, 50]}, cron="0 30 * * * ?")
    alone, beside = (simulate(found, question()) for found in (
        model(one, slots=9), model(other, one, slots=9)))  # fmt: skip
    lasted = {one.name: one.lasted for one in beside.workflows}
    assert lasted["default/w"] == alone.workflows[0].lasted


def test_busy_hours_add_up_to_the_busy_time() -> None:
    one = workflow("w", {"a": {}}, {"a": 5_000}, cron="0 0 * * * ?")
    found = simulate(model(one, slots=9), question(10))
    pool = found.groups[0]
    by_hour = {hour.at: hour.utilisation for hour in pool.hours}
    assert by_hour["2026-03-02T00:00:00Z"] == pytest.approx(1 / 9, abs=1e-4)
    assert by_hour["2026-03-02T05:00:00Z"] == pytest.approx((1 + 1_400 / 3_600) / 9, abs=1e-4)
    assert pool.busy_s == 9 * 5_000 + 3_600  # the last one goes on at the end

"""Eager dispatch: tasks that come with the answer to a report, and the claims behind them."""

from tests.mutations.mutation import Mutation, Promise, mutation

_MASTER = "master/shoal/master/dispatch/eager_dispatch.py"
_SWEEP = "master/shoal/master/services/sweep.py"
_RPC = "master/shoal/master/dispatch/rpc.py"
_WORKER = "worker/shoal/worker/intake/eager_dispatch.py"
_REPORTING = "worker/shoal/worker/results/reporting.py"
_QUEUE = "coordination/shoal/coordination/queue/transfer.py"
_OF_MASTER = "tests/unit/master/test_eager_dispatch.py"
_OF_MASTERS = "tests/integration/master/test_eager_dispatch.py"
_OF_WORKER = "tests/unit/worker/test_eager_dispatch.py"
_OF_QUEUE = "tests/integration/coordination/test_queue_transfer.py"

MUTATIONS: tuple[Mutation, ...] = (
    mutation(
        "the sweeper does not read the claims of the tasks before",
        Promise.ONE_LIVE_ATTEMPT,
        _SWEEP,
        ("if standing.intersection(some)}", "if False}"),
        (f"{_OF_MASTERS}::test_sweeper_spares_what_the_claim_before_stands_for",),
    ),
    mutation(
        "the sweeper reads new claims before old ones",
        Promise.ONE_LIVE_ATTEMPT,
        _SWEEP,
        (
            "        standing = await self._queue.claimed({b for some in before.values() for b in "
            "some})\n        claimed = await self._queue.claimed(before)\n",
            "        claimed = await self._queue.claimed(before)\n"
            "        standing = await self._queue.claimed({b for some in before.values() for b in "
            "some})\n",
        ),
        (f"{_OF_MASTERS}::test_claim_that_is_transferred_between_two_looks_is_found",),
    ),
    mutation(
        "the claim of any worker stands for a task that was dispatched eagerly",
        Promise.PROGRESS,
        _MASTER,
        ("b.id is not None and b.worker == attempt.worker", "b.id is not None"),
        (f"{_OF_MASTER}::test_what_a_worker_holds_behind_an_attempt",),
    ),
    mutation(
        "tasks are dispatched eagerly behind failures",
        Promise.ONE_LIVE_ATTEMPT,
        _MASTER,
        (
            "if ended is None or ended.state is not TaskState.SUCCEEDED or eager",
            "if ended is None or eager",
        ),
        (f"{_OF_MASTER}::test_behind_a_failure_nothing_is_taken",),
    ),
    mutation(
        "a task that is dispatched eagerly overtakes what waits",
        Promise.PROGRESS,
        _MASTER,
        (
            "if eager.before is None or (run.priority, run.id, priority, own) < eager.before",
            "",
        ),
        (f"{_OF_MASTER}::test_nothing_overtakes_what_waits_in_the_queue",),
    ),
    mutation(
        "more is dispatched eagerly than there is room for",
        Promise.ROOM,
        _MASTER,
        ("        eager.room_left,\n", "        len(run.attempts),\n"),
        (f"{_OF_MASTER}::test_no_more_is_taken_than_there_is_room_for",),
    ),
    mutation(
        "a lost answer is not given again",
        Promise.NOTHING_LOST,
        _RPC,
        ("for attempt in list(behind(run, task_instance_id, worker)):", "for attempt in ():"),
        (f"{_OF_MASTERS}::test_lost_answer_is_given_again_by_the_owner_of_the_partition[sqlite]",),
    ),
    mutation(
        "what another worker holds is granted again",
        Promise.ONE_LIVE_ATTEMPT,
        _MASTER,
        (" and attempt.worker == worker:", ":"),
        (f"{_OF_MASTER}::test_what_a_worker_holds_behind_an_attempt",),
    ),
    mutation(
        "an end is reported before the claim of its own stands",
        Promise.ONE_LIVE_ATTEMPT,
        _REPORTING,
        ("not self._eager_dispatch.is_coming(number)", "number > 0"),
        (f"{_OF_WORKER}::test_end_waits_until_the_claim_of_its_own_has_come",),
    ),
    mutation(
        "tasks are taken behind a claim that went with its session",
        Promise.SELF_FENCE,
        _WORKER,
        (
            "if self._session.is_proven and before is not None:",
            "if before is not None:",
        ),
        (f"{_OF_WORKER}::test_grant_upon_a_claim_of_a_lost_session_is_not_taken",),
    ),
    mutation(
        "tasks are taken behind a claim that is not ours",
        Promise.ONE_LIVE_ATTEMPT,
        _WORKER,
        (
            "if attempt is None or not self._queue.holds(attempt.claim):",
            "if attempt is None:",
        ),
        (f"{_OF_WORKER}::test_grant_upon_a_claim_of_a_lost_session_is_not_taken",),
    ),
    mutation(
        "a late answer starts a task that was here",
        Promise.ONE_LIVE_ATTEMPT,
        _WORKER,
        ("or self._past.knows(grant.attempt):", "or False:"),
        (f"{_OF_WORKER}::test_grant_is_taken_once",),
    ),
    mutation(
        "a worker takes tasks although others may wait before them",
        Promise.PROGRESS,
        _WORKER,
        ("room is not None and is_first and", "room is not None and"),
        (f"{_OF_WORKER}::test_nothing_is_offered_that_cannot_be_kept",),
    ),
    mutation(
        "a task runs on whose claim was not transferred",
        Promise.ONE_LIVE_ATTEMPT,
        _WORKER,
        ("for claim in new - standing:", "for claim in set[Claim]():"),
        (f"{_OF_WORKER}::test_task_whose_claim_is_not_to_be_had_is_ended",),
    ),
    mutation(
        "the old claim is released while the new one is on its way",
        Promise.ONE_LIVE_ATTEMPT,
        _QUEUE,
        (
            "return claim in self._coming or claim in self._going",
            "return claim in self._coming",
        ),
        (f"{_OF_QUEUE}::test_claim_that_somebody_else_holds_still_is_waited_for",),
    ),
    mutation(
        "a claim that is not needed any more stays when it has come",
        Promise.PROGRESS,
        _QUEUE,
        ("            self._unwanted.add(claim)\n", "            pass\n"),
        (f"{_OF_QUEUE}::test_claim_that_nobody_wants_any_more_goes_when_it_has_come",),
    ),
    mutation(
        "a claim is transferred in another session",
        Promise.SELF_FENCE,
        _QUEUE,
        (
            "for stat in after if stat and stat.session_id == session_id]",
            "for stat in after if stat]",
        ),
        (f"{_OF_QUEUE}::test_claim_of_somebody_else_is_not_taken_for_ours",),
    ),
)

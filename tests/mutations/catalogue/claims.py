"""Claims: only the holder of one ends it, and a worker that has lost one ends the task."""

from tests.mutations.mutation import Mutation, Promise, mutation

_QUEUE = "coordination/shoal/coordination/queue"
_RELEASING = f"{_QUEUE}/releasing.py"
_CLAIMING = f"{_QUEUE}/claiming.py"
_REVOKING = "master/shoal/master/dispatch/revoking.py"
_AGENT = "worker/shoal/worker/agent.py"
_RUNNER = "worker/shoal/worker/execution/runner.py"
_SERVICE = "worker/shoal/worker/execution/service.py"
_OF_QUEUE = "tests/integration/coordination/test_queue_identity.py"
_OF_AGENT = "tests/integration/worker/test_agent_claims.py"
_OF_MASTER = "tests/integration/master/test_revoking.py"
_REPEATED = f"{_OF_QUEUE}::test_repetition_spares_the_claim_that_somebody_has_made_since"

MUTATIONS: tuple[Mutation, ...] = (
    mutation(
        "a claim is released without a check whose it is",
        Promise.ONE_LIVE_ATTEMPT,
        _RELEASING,
        ("if not ended or not self._in_doubt.isdisjoint(left):", "if False:"),
        (f"{_REPEATED}[released]",),
    ),
    mutation(
        "a release that may have been carried out is repeated unread",
        Promise.ONE_LIVE_ATTEMPT,
        _RELEASING,
        ("            self._in_doubt.update(left)\n            try:", "            try:"),
        (f"{_REPEATED}[released after its end]",),
    ),
    mutation(
        "a claim is requeued without a check whose it is",
        Promise.ONE_LIVE_ATTEMPT,
        _RELEASING,
        (
            "left = await self._claiming.still_ours(left)\n            left = await self._requeue",
            "left = await self._requeue",
        ),
        (f"{_REPEATED}[requeued]",),
    ),
    mutation(
        "a claim of an earlier session is taken for one of the present",
        Promise.ONE_LIVE_ATTEMPT,
        _CLAIMING,
        ("ours = claim.generation == self._session.generation", "ours = True"),
        (
            f"{_OF_QUEUE}::test_claim_that_went_with_its_session_is_not_that_of_somebody_else"
            "[released after its end]",
        ),
    ),
    mutation(
        "an earlier claim is taken for a later one of the same task",
        Promise.ONE_LIVE_ATTEMPT,
        _CLAIMING,
        (
            "self.held.get(claim.task_instance_id) is claim\n\n    def forget",
            "claim.task_instance_id in self.held\n\n    def forget",
        ),
        (
            f"{_OF_QUEUE}::test_claim_that_was_ended_is_not_a_later_one_of_the_same_session"
            "[released after its end]",
        ),
    ),
    mutation(
        "whose a claim is does not matter",
        Promise.ONE_LIVE_ATTEMPT,
        _CLAIMING,
        (
            "return (stat.session_id, stat.czxid) == (self._session.session_id, claim.epoch)",
            "return True",
        ),
        (f"{_OF_QUEUE}::test_claim_that_was_deleted_and_made_by_another_is_left_alone[released]",),
    ),
    mutation(
        "a claim is transferred again although that was done",
        Promise.PROGRESS,
        f"{_QUEUE}/transfer.py",
        ("lambda: self._check(old, new))):", "lambda: self._check(old, new))) and False:"),
        (
            "tests/integration/coordination/test_queue_transfer.py::"
            "test_repeated_transfer_spares_the_claim_that_somebody_has_made_since",
        ),
    ),
    mutation(
        "a task whose claim was deleted runs on",
        Promise.ONE_LIVE_ATTEMPT,
        _AGENT,
        ("if attempt.claim in lost:", "if False:"),
        (f"{_OF_AGENT}::test_task_whose_claim_was_deleted_ends_and_others_run_on",),
    ),
    mutation(
        "a worker that drains does not follow its session",
        Promise.SELF_FENCE,
        _AGENT,
        (
            "await self._stop_claiming()\n                runner",
            "lasting[-2].cancel()\n                runner",
        ),
        (f"{_OF_AGENT}::test_session_that_changes_while_the_worker_drains_ends_its_tasks",),
    ),
    mutation(
        "a task starts in another session than that of its claim",
        Promise.ONE_LIVE_ATTEMPT,
        _RUNNER,
        ("if not self._is_present(attempt.claim):", "if False:"),
        (f"{_OF_AGENT}::test_task_does_not_start_in_another_session_than_that_of_its_claim",),
    ),
    mutation(
        "a worker says that it has nothing of a task that it is ending",
        Promise.ONE_LIVE_ATTEMPT,
        _SERVICE,
        ("if self._attempts.get(ref.task_instance_id) is not None:", "if False:"),
        (f"{_OF_AGENT}::test_worker_that_is_asked_ends_what_has_no_claim_and_keeps_the_rest",),
    ),
    mutation(
        "a worker ends what it is asked about although the claim stands",
        Promise.NOTHING_LOST,
        _SERVICE,
        ("if a.claim not in standing and not", "if not"),
        (f"{_OF_AGENT}::test_worker_that_is_asked_ends_what_has_no_claim_and_keeps_the_rest",),
    ),
    mutation(
        "a late answer brings what the worker has disowned",
        Promise.ONE_LIVE_ATTEMPT,
        "worker/shoal/worker/intake/eager_dispatch.py",
        ("self._past.note(ref)", "pass"),
        ("tests/unit/worker/test_eager_dispatch.py::test_what_was_disowned_is_not_taken",),
    ),
    mutation(
        "a worker that lives is not asked before its tasks are lost",
        Promise.ONE_LIVE_ATTEMPT,
        _REVOKING,
        ("if member is not None:", "if False:"),
        (
            f"{_OF_MASTER}::"
            "test_worker_that_does_not_answer_is_waited_for_as_long_as_it_lives[sqlite]",
        ),
    ),
    mutation(
        "a worker whose session was ended under it is not asked",
        Promise.ONE_LIVE_ATTEMPT,
        _REVOKING,
        ("return set(answer.held) if answer.worker_id == worker else set()", "return set()"),
        (f"{_OF_MASTER}::test_worker_that_is_no_member_but_answers_is_waited_for[sqlite]",),
    ),
    mutation(
        "a worker that is no member is waited for as long as it answers",
        Promise.PROGRESS,
        _REVOKING,
        (" or self._is_away(worker, self._overdue_s):", ":"),
        (
            f"{_OF_MASTER}::test_worker_that_is_no_member_is_not_waited_for_longer_than_its_lease"
            "_can_last[sqlite]",
        ),
    ),
    mutation(
        "a worker that hears nothing of ZooKeeper does not answer masters",
        Promise.ONE_LIVE_ATTEMPT,
        _SERVICE,
        ("asyncio.timeout(CHECK_S)", "asyncio.timeout(None)"),
        (f"{_OF_AGENT}::test_worker_that_hears_nothing_of_zookeeper_says_at_once_what_it_has",),
    ),
    mutation(
        "a successor is asked for what its predecessor had",
        Promise.PROGRESS,
        _REVOKING,
        ("if answer.worker_id == worker else set()", "if answer.worker_id else set()"),
        (
            f"{_OF_MASTER}::"
            "test_successor_at_the_address_of_a_worker_that_has_left_is_not_waited_for[sqlite]",
        ),
    ),
    mutation(
        "what a worker has still is lost all the same",
        Promise.ONE_LIVE_ATTEMPT,
        _REVOKING,
        ("if attempt.id not in held:", "if True:"),
        (
            f"{_OF_MASTER}::"
            "test_next_attempt_waits_until_the_worker_has_nothing_of_this_one[sqlite]",
        ),
    ),
    mutation(
        "another process answers for a worker",
        Promise.ONE_LIVE_ATTEMPT,
        _REVOKING,
        ("if answer.worker_id != member.id:", "if False:"),
        (f"{_OF_MASTER}::test_answer_of_another_process_at_the_address_says_nothing[sqlite]",),
    ),
    mutation(
        "an older worker is not asked",
        Promise.ONE_LIVE_ATTEMPT,
        _REVOKING,
        ("return await self._ask_older(address, refs)", "return set()"),
        (f"{_OF_MASTER}::test_what_an_older_worker_has_still_is_killed_and_runs_again[sqlite]",),
    ),
    mutation(
        "what an older worker had to end counts as killed by request",
        Promise.NOTHING_LOST,
        "master/shoal/master/dispatch/rpc.py",
        ("event = replace(event, signal=TaskSignal.LOSE)", "pass"),
        (f"{_OF_MASTER}::test_what_an_older_worker_has_still_is_killed_and_runs_again[sqlite]",),
    ),
    mutation(
        "attempts of a worker that is away are lost at once",
        Promise.ONE_LIVE_ATTEMPT,
        _REVOKING,
        ("self._is_away(worker, self._delay_s)", "self._is_away(worker, 0.0)"),
        (
            f"{_OF_MASTER}::"
            "test_attempts_of_a_worker_that_is_away_wait_for_the_takeover_delay[sqlite]",
        ),
    ),
)

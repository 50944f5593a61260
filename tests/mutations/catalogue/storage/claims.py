"""Claims: only the holder of one ends it, and a worker that has lost one ends the task."""

from tests.mutations.mutation import Mutation, Promise
from tests.mutations.place import Place

_RELEASING = Place("shoal.coordination.queue.releases")
_CLAIMING = Place("shoal.coordination.queue.claims")
_TRANSFER = Place("shoal.coordination.queue.transfer")
_AGENT = Place("shoal.worker.agent")
_RUNNER = Place("shoal.worker.execution.runner")
_SERVICE = Place("shoal.worker.execution.service")
_EAGER_DISPATCH = Place("shoal.worker.intake.eager_dispatch")
_REVOKING = Place("shoal.master.dispatch.revocation")
_RPC = Place("shoal.master.dispatch.rpc")
_OF_QUEUE = "tests/integration/coordination/queue/test_queue_identity.py"
_REPEATED = f"{_OF_QUEUE}::test_repetition_spares_the_claim_that_somebody_has_made_since"
_OF_AGENT = "tests/integration/worker/faults/test_claims.py"
_OF_MASTER = "tests/integration/master/dispatch/test_revoking.py"

MUTATIONS: tuple[Mutation, ...] = (
    Promise.ONE_LIVE_ATTEMPT.broken_if(
        "a claim is released without a check whose it is",
        _RELEASING["_release"].never("not ended or not self._in_doubt.isdisjoint(left)"),
        f"{_REPEATED}[released]",
    ),
    Promise.ONE_LIVE_ATTEMPT.broken_if(
        "a release that may have been carried out is repeated unread",
        _RELEASING["_release"].drop("self._in_doubt.update(left)"),
        f"{_REPEATED}[released after its end]",
    ),
    Promise.ONE_LIVE_ATTEMPT.broken_if(
        "a claim is requeued without a check whose it is",
        _RELEASING["requeue"].drop("left = await self._claiming.still_ours(left)"),
        f"{_REPEATED}[requeued]",
    ),
    Promise.ONE_LIVE_ATTEMPT.broken_if(
        "a claim of an earlier session is taken for one of the present",
        _CLAIMING["holds"].always("claim.generation == self._session.generation"),
        f"{_OF_QUEUE}::"
        "test_claim_that_went_with_its_session_is_not_that_of_somebody_else"
        "[released after its end]",
    ),
    Promise.ONE_LIVE_ATTEMPT.broken_if(
        "an earlier claim is taken for a later one of the same task",
        _CLAIMING["holds"].replace(
            "self.held.get(claim.task_instance_id) is claim", "claim.task_instance_id in self.held"
        ),
        f"{_OF_QUEUE}::"
        "test_claim_that_was_ended_is_not_a_later_one_of_the_same_session[released after its end]",
    ),
    Promise.ONE_LIVE_ATTEMPT.broken_if(
        "whose a claim is does not matter",
        _CLAIMING["is_ours"].always(
            "(stat.session_id, stat.czxid) == (self._session.session_id, claim.epoch)"
        ),
        f"{_OF_QUEUE}::test_claim_that_was_deleted_and_made_by_another_is_left_alone[released]",
    ),
    Promise.PROGRESS.broken_if(
        "a claim is transferred again although that was done",
        _TRANSFER["_one"].replace(
            "in_doubt and (found := (await self._session.retry(...)))",
            "in_doubt and (found := (await self._session.retry(...))) and False",
        ),
        "tests/integration/coordination/queue/test_queue_transfer.py::"
        "test_repeated_transfer_spares_the_claim_that_somebody_has_made_since",
    ),
    Promise.ONE_LIVE_ATTEMPT.broken_if(
        "a task whose claim was deleted runs on",
        _AGENT["_end_unclaimed"].never("attempt.claim in lost"),
        f"{_OF_AGENT}::test_task_whose_claim_was_deleted_ends_and_others_run_on",
    ),
    Promise.SELF_FENCE.broken_if(
        "a worker that drains does not follow its session",
        _AGENT["run"].replace("await self._end_claiming()", "lasting[-2].cancel()"),
        f"{_OF_AGENT}::test_session_that_changes_while_the_worker_drains_ends_its_tasks",
    ),
    Promise.ONE_LIVE_ATTEMPT.broken_if(
        "a task starts in another session than that of its claim",
        _RUNNER["_require_claim"].never("not self._claims.is_present(attempt.claim)"),
        f"{_OF_AGENT}::test_task_does_not_start_in_another_session_than_that_of_its_claim",
    ),
    Promise.ONE_LIVE_ATTEMPT.broken_if(
        "a worker says that it has nothing of a task that it is ending",
        _SERVICE["Revoke"].never("self._attempts.get(ref.task_instance_id) is not None"),
        f"{_OF_AGENT}::test_worker_that_is_asked_ends_what_has_no_claim_and_keeps_the_rest",
    ),
    Promise.NOTHING_LOST.broken_if(
        "a worker ends what it is asked about although the claim stands",
        _SERVICE["_unclaimed"].drop("a.claim not in standing"),
        f"{_OF_AGENT}::test_worker_that_is_asked_ends_what_has_no_claim_and_keeps_the_rest",
    ),
    Promise.ONE_LIVE_ATTEMPT.broken_if(
        "a late answer brings what the worker has disowned",
        _EAGER_DISPATCH["refuse"].drop("self._past.note(ref)"),
        "tests/unit/worker/intake/test_eager_dispatch.py::test_what_was_disowned_is_not_taken",
    ),
    Promise.ONE_LIVE_ATTEMPT.broken_if(
        "a worker that lives is not asked before its tasks are lost",
        _REVOKING["_settle_worker"].never("member is not None"),
        f"{_OF_MASTER}::test_worker_that_does_not_answer_is_waited_for_as_long_as_it_lives[sqlite]",
    ),
    Promise.ONE_LIVE_ATTEMPT.broken_if(
        "a worker whose session was ended under it is not asked",
        _REVOKING["_ask_departed"].replace(
            "set(answer.held) if answer.worker_id == worker else set()", "set()"
        ),
        f"{_OF_MASTER}::test_worker_that_is_no_member_but_answers_is_waited_for[sqlite]",
    ),
    Promise.PROGRESS.broken_if(
        "a worker that is not a member is waited for as long as it answers",
        _REVOKING["_ask_departed"].drop("self._is_away(...)"),
        f"{_OF_MASTER}::"
        "test_worker_that_is_no_member_is_not_waited_for_longer_than_its_lease_can_last[sqlite]",
    ),
    Promise.ONE_LIVE_ATTEMPT.broken_if(
        "a worker that hears nothing of ZooKeeper does not answer masters",
        _SERVICE["_unclaimed"].replace("CHECK_S", "None"),
        f"{_OF_AGENT}::test_worker_that_hears_nothing_of_zookeeper_says_at_once_what_it_has",
    ),
    Promise.PROGRESS.broken_if(
        "a successor is asked for what its predecessor had",
        _REVOKING["_ask_departed"].replace("answer.worker_id == worker", "answer.worker_id"),
        f"{_OF_MASTER}::"
        "test_successor_at_the_address_of_a_worker_that_has_left_is_not_waited_for[sqlite]",
    ),
    Promise.ONE_LIVE_ATTEMPT.broken_if(
        "what a worker has still is lost all the same",
        _REVOKING["_ask_until_free"].always("attempt.id not in held"),
        f"{_OF_MASTER}::test_next_attempt_waits_until_the_worker_has_nothing_of_this_one[sqlite]",
    ),
    Promise.ONE_LIVE_ATTEMPT.broken_if(
        "another process answers for a worker",
        _REVOKING["_ask"].never("answer.worker_id != member.id"),
        f"{_OF_MASTER}::test_answer_of_another_process_at_the_address_says_nothing[sqlite]",
    ),
    Promise.ONE_LIVE_ATTEMPT.broken_if(
        "attempts of a worker that is away are lost at once",
        _REVOKING["_settle_worker"].replace("self._delay_s", "0.0"),
        f"{_OF_MASTER}::test_attempts_of_a_worker_that_is_away_wait_for_the_takeover_delay[sqlite]",
    ),
)

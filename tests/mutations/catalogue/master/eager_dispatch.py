"""Eager dispatch: tasks that come with the answer to a report, and the claims behind them."""

from tests.mutations.mutation import Mutation, Promise
from tests.mutations.place import Place

_SWEEP = Place("shoal.master.services.sweeper")
_MASTER = Place("shoal.master.engine.eager_dispatch")
_RPC = Place("shoal.master.dispatch.rpc")
_REPORTING = Place("shoal.worker.results.reporter")
_WORKER = Place("shoal.worker.intake.eager_dispatch")
_QUEUE = Place("shoal.coordination.queue.transfer")
_OF_MASTERS = "tests/integration/master/engine/test_eager_dispatch.py"
_OF_MASTER = "tests/unit/master/test_eager_dispatch.py"
_OF_WORKER = "tests/unit/worker/intake/test_eager_dispatch.py"
_OF_QUEUE = "tests/integration/coordination/queue/test_queue_transfer.py"

MUTATIONS: tuple[Mutation, ...] = (
    Promise.ONE_LIVE_ATTEMPT.broken_if(
        "the sweeper does not read the claims of the tasks before",
        _SWEEP["_transferred"].never("standing.intersection(some)"),
        f"{_OF_MASTERS}::test_sweeper_spares_what_the_claim_before_stands_for",
    ),
    Promise.ONE_LIVE_ATTEMPT.broken_if(
        "the sweeper reads new claims before old ones",
        _SWEEP["_transferred"].replace(
            "standing = await self._queue.claimed({b for some in before.values() for b in "
            "some})\n"
            "claimed = await self._queue.claimed(before)",
            "claimed = await self._queue.claimed(before)\n"
            "standing = await self._queue.claimed({b for some in before.values() for b in "
            "some})",
        ),
        f"{_OF_MASTERS}::test_claim_that_is_transferred_between_two_looks_is_found",
    ),
    Promise.PROGRESS.broken_if(
        "the claim of any worker stands for a task that was dispatched eagerly",
        _MASTER["held_before"].drop("b.worker == attempt.worker"),
        f"{_OF_MASTER}::test_what_a_worker_holds_behind_an_attempt",
    ),
    Promise.ONE_LIVE_ATTEMPT.broken_if(
        "tasks are dispatched eagerly behind failures",
        _MASTER["taken_by"].drop("ended.state is not TaskState.SUCCEEDED"),
        f"{_OF_MASTER}::test_behind_a_failure_nothing_is_taken",
    ),
    Promise.PROGRESS.broken_if(
        "a task that is dispatched eagerly overtakes what waits",
        _MASTER["precedes"].always("place < self.before"),
        f"{_OF_MASTER}::test_nothing_overtakes_what_waits_in_the_queue",
    ),
    Promise.PROGRESS.broken_if(
        "eager dispatch goes on with one project while it is the turn of another one",
        _MASTER["precedes"].never("self.lane is not None and lane != self.lane"),
        f"{_OF_MASTER}::test_it_is_the_turn_of_another_project_that_waits",
    ),
    Promise.ROOM.broken_if(
        "more is dispatched eagerly than there is room for",
        _MASTER["taken_by"].replace(
            "heapq.nsmallest(eager.room_left, ...)", "heapq.nsmallest(len(run.attempts), ...)"
        ),
        f"{_OF_MASTER}::test_no_more_is_taken_than_there_is_room_for",
    ),
    Promise.NOTHING_LOST.broken_if(
        "a lost answer is not given again",
        _RPC["_dispatch_eagerly"].replace("list(...)", "()"),
        f"{_OF_MASTERS}::test_lost_answer_is_given_again_by_the_owner_of_the_partition[sqlite]",
    ),
    Promise.ONE_LIVE_ATTEMPT.broken_if(
        "what another worker holds is granted again",
        _MASTER["behind"].drop("attempt.worker == worker"),
        f"{_OF_MASTER}::test_what_a_worker_holds_behind_an_attempt",
    ),
    Promise.ONE_LIVE_ATTEMPT.broken_if(
        "an end is reported before the claim of its own stands",
        _REPORTING["_is_due"].replace("not self._eager_dispatch.is_coming(number)", "number > 0"),
        f"{_OF_WORKER}::test_end_waits_until_the_claim_of_its_own_has_come",
    ),
    Promise.SELF_FENCE.broken_if(
        "tasks are taken behind a claim that went with its session",
        _WORKER["_claim_to_take"].drop("self._session.is_proven"),
        f"{_OF_WORKER}::test_grant_upon_a_claim_of_a_lost_session_is_not_taken",
    ),
    Promise.ONE_LIVE_ATTEMPT.broken_if(
        "tasks are taken behind a claim that is not ours",
        _WORKER["_claim_of"].drop("not self._queue.holds(...)"),
        f"{_OF_WORKER}::test_grant_upon_a_claim_of_a_lost_session_is_not_taken",
    ),
    Promise.ONE_LIVE_ATTEMPT.broken_if(
        "a late answer starts a task that was here",
        _WORKER["_claim_to_take"].never("self._past.knows(grant.attempt)"),
        f"{_OF_WORKER}::test_grant_is_taken_once",
    ),
    Promise.PROGRESS.broken_if(
        "a worker takes tasks although others may wait before them",
        _WORKER["request"].replace(
            "self._readiness.takes_tasks and is_first and all(...)",
            "self._readiness.takes_tasks and all(...)",
        ),
        f"{_OF_WORKER}::test_nothing_is_offered_that_cannot_be_kept",
    ),
    Promise.ONE_LIVE_ATTEMPT.broken_if(
        "a task runs on whose claim was not transferred",
        _WORKER["_see_through"].replace("new - standing", "set[Claim]()"),
        f"{_OF_WORKER}::test_task_whose_claim_is_not_to_be_had_is_ended",
    ),
    Promise.ONE_LIVE_ATTEMPT.broken_if(
        "the old claim is released while the new one is on its way",
        _QUEUE["postpone_release"].drop("claim in self._going"),
        f"{_OF_QUEUE}::test_claim_that_somebody_else_holds_still_is_waited_for",
    ),
    Promise.PROGRESS.broken_if(
        "a claim that is not needed any more stays when it has come",
        _QUEUE["postpone_release"].drop("self._unwanted.add(claim)"),
        f"{_OF_QUEUE}::test_claim_that_nobody_wants_any_more_goes_when_it_has_come",
    ),
    Promise.SELF_FENCE.broken_if(
        "a claim is transferred in another session",
        _QUEUE["_check"].drop("stat.session_id == session_id"),
        f"{_OF_QUEUE}::test_claim_of_somebody_else_is_not_taken_for_ours",
    ),
)

"""A worker that is half alive: masters it cannot reach, descriptors it lacks, suspended time."""

from tests.mutations.mutation import Mutation, Promise
from tests.mutations.place import Place

_UNANSWERED = Place("shoal.worker.intake.fetches")
_FETCHING = Place("shoal.worker.intake.fetches")
_ASSEMBLY = Place("shoal.worker.assembly")
_REACHABILITY = Place("shoal.worker.intake.reachability")
_SWEEP = Place("shoal.master.services.sweeper")
_RPC = Place("shoal.master.dispatch.rpc")
_RUNNER = Place("shoal.worker.execution.runner")
_LAUNCHER = Place("shoal.worker.supervisor.launcher")
_CHILD = Place("shoal.worker.supervisor.shim.child")
_DESCRIPTORS = Place("shoal.worker.supervisor.shim.descriptors")
_SESSION = Place("shoal.coordination.session.session")
_WATCHDOG = Place("shoal.worker.supervisor.watchdog")
_TESTS = "tests/integration/worker"
_UNREACHABLE = f"{_TESTS}/faults/test_unreachable.py"
_STARTING = f"{_TESTS}/faults/test_starting.py"
_TEST_LEASE = f"{_TESTS}/supervisor/test_lease.py"

MUTATIONS: tuple[Mutation, ...] = (
    Promise.PROGRESS.broken_if(
        "claims that no master answers for are kept",
        _UNANSWERED["give_up_unanswered"].drop("refuse(attempt)"),
        f"{_UNREACHABLE}::test_worker_that_no_master_answers_leaves_the_queue_to_a_sound_one",
    ),
    Promise.ONE_LIVE_ATTEMPT.broken_if(
        "a payload that comes after its claim was released is run",
        _FETCHING["_request"].never("attempt.over.is_set()"),
        "tests/unit/worker/intake/test_fetching.py::"
        "test_payload_that_comes_when_the_attempt_is_over_is_not_taken",
    ),
    Promise.PROGRESS.broken_if(
        "tasks of a master that does not answer are claimed",
        _ASSEMBLY["__init__"].drop("reachability.subscribe(...)"),
        f"{_UNREACHABLE}::"
        "test_tasks_of_masters_that_answer_go_on_behind_those_of_one_that_does_not",
    ),
    Promise.PROGRESS.broken_if(
        "a silent master is not probed",
        _REACHABILITY["_probe_until_answered"].drop("await self._masters.probe(...)"),
        f"{_UNREACHABLE}::"
        "test_claims_are_released_while_no_master_answers_and_run_when_one_does[refused]",
    ),
    Promise.ONE_LIVE_ATTEMPT.broken_if(
        "a sweep judges by claims from before a request",
        _SWEEP["_find_missing"].drop("a.id not in self._engine.asked"),
        "tests/integration/master/upkeep/test_live_claims.py::"
        "test_attempt_that_is_claimed_again_while_the_sweeper_looks_is_not_lost[sqlite]",
    ),
    Promise.PROGRESS.broken_if(
        "tasks fail where there is no room for a process",
        _LAUNCHER["_launch"].never("error.errno in NO_ROOM"),
        f"{_STARTING}::test_worker_without_descriptors_hands_tasks_back_and_recovers",
    ),
    Promise.PROGRESS.broken_if(
        "tasks fail where their master has no memory",
        _RPC["_grant"].never("is_shortage(error)"),
        "tests/integration/master/membership/test_master.py::"
        "test_task_does_not_fail_because_its_master_is_out_of_memory",
    ),
    Promise.PROGRESS.broken_if(
        "tasks fail where the worker has no memory to prepare them",
        _RUNNER["_needing_room"].replace("MemoryError", "BufferError"),
        f"{_STARTING}::test_worker_without_memory_hands_a_task_back_and_runs_it_later",
    ),
    Promise.PROGRESS.broken_if(
        "tasks fail where their shim has no descriptor",
        _CHILD["starved"].never(
            "isinstance(self.__cause__, OSError) and self.__cause__.errno in NO_ROOM"
        ),
        f"{_STARTING}::test_shim_without_descriptors_hands_its_attempt_back",
    ),
    Promise.KILLED_MEANS_DEAD.broken_if(
        "the launcher takes the last descriptors for tasks",
        _DESCRIPTORS["two_pipes"].replace(
            "resource.getrlimit(resource.RLIMIT_NOFILE)[0] - RESERVE", "1 << 30"
        ),
        f"{_STARTING}::test_launcher_keeps_enough_to_kill_and_to_store",
    ),
    Promise.SELF_FENCE.broken_if(
        "the session's proof lasts through a suspension",
        _SESSION["_check_proof"].replace("min(...)", "left_s"),
        "tests/integration/coordination/session/test_session_proof.py::"
        "test_suspended_machine_proves_nothing_when_it_goes_on",
    ),
    Promise.SELF_FENCE.broken_if(
        "the launcher's wait for the lease lasts through a suspension",
        _LAUNCHER["_timeout_ms"].replace(
            "min(left_s, LOOK_AGAIN_S) if self._attempts else left_s", "left_s"
        ),
        f"{_TEST_LEASE}::test_lease_ends_while_the_machine_is_suspended",
    ),
    Promise.SELF_FENCE.broken_if(
        "the watchdog's lease does not count suspended time",
        _WATCHDOG.replace(
            "from shoal.worker.supervisor.clock import boottime",
            "from time import monotonic as boottime",
        ),
        f"{_TEST_LEASE}::test_watchdog_counts_suspended_time_too",
    ),
)

"""A worker that is half alive: masters it cannot reach, descriptors it lacks, suspended time."""

from tests.mutations.mutation import Mutation, Promise, mutation

_WORKER = "worker/shoal/worker"
_TESTS = "tests/integration/worker"
_UNREACHABLE = f"{_TESTS}/test_agent_unreachable.py"
_STARTING = f"{_TESTS}/test_starting.py"

MUTATIONS: tuple[Mutation, ...] = (
    mutation(
        "claims that no master answers for are kept",
        Promise.PROGRESS,
        f"{_WORKER}/intake/unanswered.py",
        ("            refuse(attempt)\n", "            pass\n"),
        (f"{_UNREACHABLE}::test_worker_that_no_master_answers_leaves_the_queue_to_a_sound_one",),
    ),
    mutation(
        "a payload that comes after its claim was released is run",
        Promise.ONE_LIVE_ATTEMPT,
        f"{_WORKER}/intake/fetching.py",
        (
            "if attempt.over.is_set():\n                continue  # killed while we asked",
            "if False:\n                continue  # killed while we asked",
        ),
        (
            "tests/unit/worker/test_fetching.py::"
            "test_payload_that_comes_when_the_attempt_is_over_is_not_taken",
        ),
    ),
    mutation(
        "tasks of a master that does not answer are claimed",
        Promise.PROGRESS,
        "worker/shoal/worker/agent.py",
        ("        self._queue.leave_out(self._reachability.partitions)\n", ""),
        (
            f"{_UNREACHABLE}::"
            "test_tasks_of_masters_that_answer_go_on_behind_those_of_one_that_does_not",
        ),
    ),
    mutation(
        "a silent master is not probed",
        Promise.PROGRESS,
        f"{_WORKER}/intake/reachability.py",
        (
            "await self._masters.probe(address, PROBE_TIMEOUT_S)\n                    return",
            "return",
        ),
        (
            f"{_UNREACHABLE}::"
            "test_claims_are_released_while_no_master_answers_and_run_when_one_does[refused]",
        ),
    ),
    mutation(
        "a sweep judges by claims from before a request",
        Promise.ONE_LIVE_ATTEMPT,
        "master/shoal/master/services/sweep.py",
        (" if a.id not in self._engine.asked]", "]"),
        (
            "tests/integration/master/test_live_claims.py::"
            "test_attempt_that_is_claimed_again_while_the_sweeper_looks_is_not_lost[sqlite]",
        ),
    ),
    mutation(
        "tasks fail where there is no room for a process",
        Promise.PROGRESS,
        f"{_WORKER}/supervisor/launcher.py",
        ("starved = error.errno in NO_ROOM", "starved = False"),
        (f"{_STARTING}::test_worker_without_descriptors_hands_tasks_back_and_recovers",),
    ),
    mutation(
        "tasks fail where their shim has no descriptor",
        Promise.PROGRESS,
        f"{_WORKER}/supervisor/shim/child.py",
        ("isinstance(self.__cause__, OSError) and self.__cause__.errno in NO_ROOM", "False"),
        (f"{_STARTING}::test_shim_without_descriptors_hands_its_attempt_back",),
    ),
    mutation(
        "the launcher takes the last descriptors for tasks",
        Promise.KILLED_MEANS_DEAD,
        f"{_WORKER}/supervisor/shim/descriptors.py",
        ("resource.getrlimit(resource.RLIMIT_NOFILE)[0] - RESERVE", "1 << 30"),
        (f"{_STARTING}::test_launcher_keeps_enough_to_kill_and_to_store",),
    ),
    mutation(
        "the session's proof lasts through a suspension",
        Promise.SELF_FENCE,
        "coordination/shoal/coordination/session/session.py",
        ("timeout=min(left_s, CHECK * self.timeout_s)", "timeout=left_s"),
        (
            "tests/integration/coordination/test_session_proof.py::"
            "test_suspended_machine_proves_nothing_when_it_goes_on",
        ),
    ),
    mutation(
        "the launcher's wait for the lease lasts through a suspension",
        Promise.SELF_FENCE,
        f"{_WORKER}/supervisor/launcher.py",
        ("min(left_s, LOOK_AGAIN_S) if self._attempts else left_s", "left_s"),
        (f"{_TESTS}/test_lease.py::test_lease_ends_while_the_machine_is_suspended",),
    ),
    mutation(
        "the watchdog's lease does not count suspended time",
        Promise.SELF_FENCE,
        f"{_WORKER}/supervisor/watchdog.py",
        (
            "from shoal.worker.supervisor.clock import boottime\n",
            "from time import monotonic as boottime\n",
        ),
        (f"{_TESTS}/test_lease.py::test_watchdog_counts_suspended_time_too",),
    ),
)

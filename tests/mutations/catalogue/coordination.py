"""ZooKeeper: sessions that prove themselves, ownership, the queue, membership."""

from tests.mutations.mutation import Mutation, Promise, mutation

_OWNERSHIP = "coordination/shoal/coordination/recipes/ownership.py"
_SESSION = "coordination/shoal/coordination/session/session.py"
_QUEUE = "coordination/shoal/coordination/queue/claiming.py"
_HEARTBEAT = "coordination/shoal/coordination/session/heartbeat.py"
_FENCE = "coordination/shoal/coordination/recipes/fence.py"
_TESTS = "tests/integration/coordination"

MUTATIONS: tuple[Mutation, ...] = (
    mutation(
        "a session counts as proven while it is connected",
        Promise.SELF_FENCE,
        _SESSION,
        (
            "return boottime() < self.proven_until",
            "return self.state is SessionState.CONNECTED",
        ),
        (f"{_TESTS}/test_session_proof.py::test_connection_alone_proves_nothing",),
    ),
    mutation(
        "ownership ends only when the session is known to be lost",
        Promise.SELF_FENCE,
        _SESSION,
        ("(left_s := self.proven_until - boottime()) > 0", "(left_s := 3600.0) > 0"),
        (f"{_TESTS}/test_session.py::test_proof_stops_when_the_connection_is_cut",),
    ),
    mutation(
        "the proof outlasts the session",
        Promise.SELF_FENCE,
        _SESSION,
        ("PROOF = 0.7 ", "PROOF = 1.5 "),
        (f"{_TESTS}/test_ownership.py::test_owner_that_is_cut_off_stops_before_another_can_begin",),
    ),
    mutation(
        "the proof counts from the answer, not from the sending",
        Promise.SELF_FENCE,
        _SESSION,
        (
            "self._heartbeat.prove(session_id, sent, confirms=confirms)",
            "self._heartbeat.prove(session_id, time.monotonic(), confirms=confirms)",
        ),
        (
            f"{_TESTS}/test_session.py::"
            "test_proof_counts_from_the_sending_of_a_request_not_from_its_late_answer",
        ),
    ),
    mutation(
        "a loop that stands still keeps its session",
        Promise.PROGRESS,
        "coordination/shoal/coordination/session/heartbeat.py",
        ("STANDSTILL = 1.0 ", "STANDSTILL = 1000.0 "),
        (
            f"{_TESTS}/test_session_proof.py::"
            "test_session_of_a_loop_that_stands_still_ends_and_a_new_one_follows",
        ),
    ),
    mutation(
        "a server that falls silent costs the proof",
        Promise.PROGRESS,
        "coordination/shoal/coordination/session/heartbeat.py",
        ("SILENCE = 1 / 3\n", "SILENCE = 2 / 3\n"),
        (f"{_TESTS}/test_session_proof.py::test_server_that_falls_silent_costs_no_proof",),
    ),
    mutation(
        "proofs wait for the loop",
        Promise.PROGRESS,
        _SESSION,
        (
            "self._heartbeat.prove(session_id, sent, confirms=confirms)\n",
            "self._heartbeat.prove(0, sent, confirms=confirms)\n",
        ),
        (f"{_TESTS}/test_session_proof.py::test_read_proves_nothing",),
    ),
    mutation(
        "a read proves the session",
        Promise.SELF_FENCE,
        "coordination/shoal/coordination/session/requests.py",
        (
            'return self._request("get", path, request, _node)',
            'return self._request("get", path, request, _node, Proof.OF_SESSION)',
        ),
        (f"{_TESTS}/test_session_proof.py::test_read_proves_nothing",),
    ),
    mutation(
        "a sync on a new connection proves the session",
        Promise.SELF_FENCE,
        _HEARTBEAT,
        ("if self._is_confirmed and (session_id", "if (session_id"),
        (
            f"{_TESTS}/test_session_zombie.py::test_sync_alone_proves_no_session_on_a_new_connection",
        ),
    ),
    mutation(
        "a connection that has outlived its session is kept",
        Promise.PROGRESS,
        "coordination/shoal/coordination/session/client.py",
        ("            self.drop_connection()\n\n    def drop", "            pass\n\n    def drop"),
        (f"{_TESTS}/test_session_zombie.py::test_connection_without_a_session_is_left[multi]",),
    ),
    mutation(
        "a transaction that the session has not outlived proves it",
        Promise.SELF_FENCE,
        "coordination/shoal/coordination/session/wire.py",
        ("found = [error, *answer] if isinstance(answer, list) else [error]", "found = [error]"),
        (f"{_TESTS}/test_session_zombie.py::test_connection_without_a_session_is_left[multi]",),
    ),
    mutation(
        "one callback that fails keeps everything behind it",
        Promise.PROGRESS,
        _SESSION,
        (
            "except Exception:  # it is no reason",
            "except ZeroDivisionError:  # it is no reason",
        ),
        (f"{_TESTS}/test_session_zombie.py::test_callback_that_fails_keeps_nothing_else",),
    ),
    mutation(
        "the epoch is a constant",
        Promise.FENCED_OWNERSHIP,
        _OWNERSHIP,
        ("return created.czxid", "return 1"),
        (f"{_TESTS}/test_ownership.py::test_partition_is_handed_over_once_and_the_epoch_grows",),
    ),
    mutation(
        "a new beginning keeps the epoch of the old one",
        Promise.FENCED_OWNERSHIP,
        _OWNERSHIP,
        (
            "if node.stat.czxid > self._last_epochs.get(partition, 0) and node.data == self._data:",
            "if node.data == self._data:",
        ),
        (f"{_TESTS}/test_ownership.py::test_session_that_goes_on_after_doubt_gets_a_new_epoch",),
    ),
    mutation(
        "somebody else's owner node is taken for our own",
        Promise.FENCED_OWNERSHIP,
        _OWNERSHIP,
        (
            "if node.stat.session_id != self._session.session_id:\n            return None",
            "if False:\n            return None",
        ),
        (f"{_TESTS}/test_ownership_release.py::test_owner_node_of_another_session_is_left_alone",),
    ),
    mutation(
        "a partition is given up before its work is",
        Promise.FENCED_OWNERSHIP,
        _OWNERSHIP,
        (
            'await self._guarded("on_released", self._on_released(partition))\n'
            "            del self._epochs[partition]\n"
            "            await self._delete(partition)",
            "await self._delete(partition)\n"
            '                await self._guarded("on_released", self._on_released(partition))\n'
            "            del self._epochs[partition]",
        ),
        (
            f"{_TESTS}/test_ownership_release.py::"
            "test_nobody_owns_a_partition_while_its_old_owner_finishes",
        ),
    ),
    mutation(
        "another owner's node confirms that we own",
        Promise.FENCED_OWNERSHIP,
        _OWNERSHIP,
        ("stat.czxid == epochs.get(partition)", "partition in epochs"),
        (f"{_TESTS}/test_fair_share.py::test_owner_node_has_the_data_and_confirms_the_owner",),
    ),
    mutation(
        "nobody waits after an owner that vanished",
        Promise.SELF_FENCE,
        _OWNERSHIP,
        ("wait_s = vanished_at + self._takeover_delay_s - time.monotonic()", "wait_s = 0.0"),
        (f"{_TESTS}/test_ownership.py::test_takeover_waits_after_an_owner_that_vanished",),
    ),
    mutation(
        "results of a transaction are not looked at",
        Promise.ONE_LIVE_ATTEMPT,
        "coordination/shoal/coordination/session/requests.py",
        (
            "raise failure\n",
            "return [Created(p, 0, 0) if type(o) is Create else None for p, o in "
            "zip(paths, operations)]\n",
        ),
        (
            f"{_TESTS}/test_session.py::test_multi_with_one_bad_operation_does_nothing",
            f"{_TESTS}/test_queue.py::test_racing_claimers_get_each_entry_once",
        ),
    ),
    mutation(
        "a claim does not end with its session",
        Promise.PROGRESS,
        _QUEUE,
        ("Create(claim, worker_id.encode(), ephemeral=True)", "Create(claim, worker_id.encode())"),
        (f"{_TESTS}/test_queue.py::test_claims_vanish_when_the_session_expires",),
    ),
    mutation(
        "somebody else's claim is taken for one whose answer was lost",
        Promise.ONE_LIVE_ATTEMPT,
        _QUEUE,
        (
            "and node.stat.session_id == self._session.session_id\n"
            "                and node.data == worker_id.encode()\n",
            "",
        ),
        (
            f"{_TESTS}/test_queue_recovery.py::test_claim_that_somebody_else_made_meanwhile_is_theirs",
        ),
    ),
    mutation(
        "a claim that died with its session counts",
        Promise.ONE_LIVE_ATTEMPT,
        _QUEUE,
        (
            "if self._session.generation != generation:\n                raise SessionLost",
            "if False:\n                raise SessionLost",
        ),
        (f"{_TESTS}/test_queue.py::test_claim_that_died_with_its_session_says_so",),
    ),
    mutation(
        "every put of an entry makes a new name",
        Promise.ONE_LIVE_ATTEMPT,
        "coordination/shoal/coordination/queue/putting.py",
        (
            "self._session.create(entry.path) for entry in left",
            "self._session.create(entry.path, sequential=True) for entry in left",
        ),
        (f"{_TESTS}/test_queue.py::test_put_twice_is_one_entry",),
    ),
    mutation(
        "a queue is looked at only when its notification arrives",
        Promise.PROGRESS,
        "coordination/shoal/coordination/queue/head.py",
        (
            "if self._claimers.changed or self._trust.is_expired:",
            "if self._claimers.changed:",
        ),
        (
            f"{_TESTS}/test_queue_recovery.py::test_entry_whose_notification_was_not_heard_is_found_all_the_same",
        ),
    ),
    mutation(
        "the node of another process with our name is deleted",
        Promise.ONE_LIVE_ATTEMPT,
        "coordination/shoal/coordination/cluster/membership.py",
        ("elif _decode(node.data).get(INCARNATION) == self._incarnation:", "elif True:"),
        (f"{_TESTS}/test_membership.py::test_node_of_another_process_with_our_id_is_waited_for",),
    ),
    mutation(
        "a leader's transactions do not carry its epoch",
        Promise.FENCED_OWNERSHIP,
        _FENCE,
        ("return Check(path, node.stat.version)", "return Check(path)"),
        (f"{_TESTS}/test_election.py::test_writes_of_an_old_leader_are_refused",),
        also={_FENCE: ("return Check(path, stat.version)", "return Check(path)")},
    ),
    mutation(
        "a former leader raises the fence again",
        Promise.FENCED_OWNERSHIP,
        _FENCE,
        ("if stored > epoch:", "if False:"),
        (f"{_TESTS}/test_election.py::test_old_epoch_cannot_raise_the_fence_again",),
    ),
    mutation(
        "a message is acknowledged by a consumer that had it once",
        Promise.FENCED_OWNERSHIP,
        "coordination/shoal/coordination/messages/owned.py",
        ("multi([self._fence, *operations])", "multi([*operations])"),
        (f"{_TESTS}/test_messages.py::test_the_server_itself_refuses_an_old_owner",),
    ),
)

"""ZooKeeper: sessions that prove themselves, ownership, the queue, membership."""

from tests.mutations.mutation import Mutation, Promise
from tests.mutations.place import Place

_SESSION = Place("shoal.coordination.session.session")
_HEARTBEAT = Place("shoal.coordination.session.heartbeat")
_REQUESTS = Place("shoal.coordination.session.requests")
_CLIENT = Place("shoal.coordination.session.client")
_WIRE = Place("shoal.coordination.session.wire")
_OWNERSHIP = Place("shoal.coordination.recipes.ownership")
_TURNS = Place("shoal.coordination.session.turns")
_QUEUE = Place("shoal.coordination.queue.claims")
_PUTTING = Place("shoal.coordination.queue.putter")
_HEAD = Place("shoal.coordination.queue.head")
_READER = Place("shoal.coordination.queue.reader")
_WINDOW = Place("shoal.coordination.queue.window")
_LANES = Place("shoal.coordination.cluster.lanes")
_SWEEPER = Place("shoal.master.services.sweeper")
_LANE_TESTS = "tests/integration/coordination/queue/test_queue_lanes.py"
_MEMBERSHIP = Place("shoal.coordination.cluster.membership")
_FENCE = Place("shoal.coordination.recipes.fence")
_OWNED = Place("shoal.coordination.messages.owned")
_TESTS = "tests/integration/coordination"
_TEST_SESSION_PROOF = f"{_TESTS}/session/test_session_proof.py"
_TEST_SESSION = f"{_TESTS}/session/test_session.py"
_TEST_OWNERSHIP = f"{_TESTS}/test_ownership.py"
_TEST_SESSION_ZOMBIE = f"{_TESTS}/session/test_session_zombie.py"
_TEST_OWNERSHIP_RELEASE = f"{_TESTS}/test_ownership_release.py"
_TEST_QUEUE = f"{_TESTS}/queue/test_queue.py"
_TEST_QUEUE_RECOVERY = f"{_TESTS}/queue/test_queue_recovery.py"
_TEST_ELECTION = f"{_TESTS}/test_election.py"
_TEST_SHARED_SESSION = f"{_TESTS}/test_shared_session.py"
_GROUP = Place("shoal.coordination.group.group")
_HISTORIES = (
    "tests/unit/coordination/actors/test_actors_under_faults.py::"
    "test_actors_that_share_sessions_survive_every_fault"
)

MUTATIONS: tuple[Mutation, ...] = (
    Promise.SELF_FENCE.broken_if(
        "a session counts as proven while it is connected",
        _SESSION["is_proven"].replace(
            "boottime() < self.proven_until", "self.state is SessionState.CONNECTED"
        ),
        f"{_TEST_SESSION_PROOF}::test_connection_alone_proves_nothing",
    ),
    Promise.SELF_FENCE.broken_if(
        "ownership ends only when the session is known to be lost",
        _SESSION["_check_proof"].replace("self.proven_until - boottime()", "3600.0"),
        f"{_TEST_SESSION}::test_proof_stops_when_the_connection_is_cut",
    ),
    Promise.SELF_FENCE.broken_if(
        "the proof outlasts the session",
        _SESSION.replace("PROOF = 0.7", "PROOF = 1.5"),
        f"{_TEST_OWNERSHIP}::test_owner_that_is_cut_off_stops_before_another_can_begin",
    ),
    Promise.SELF_FENCE.broken_if(
        "the proof counts from the answer, not from the sending",
        _SESSION["_request"].replace("sent", "time.monotonic()"),
        f"{_TEST_SESSION}::"
        "test_proof_counts_from_the_sending_of_a_request_not_from_its_late_answer",
    ),
    Promise.PROGRESS.broken_if(
        "a loop that stands still keeps its session",
        _HEARTBEAT.replace("STANDSTILL = 1.0", "STANDSTILL = 1000.0"),
        f"{_TEST_SESSION_PROOF}::"
        "test_session_of_a_loop_that_stands_still_ends_and_a_new_one_follows",
    ),
    Promise.PROGRESS.broken_if(
        "a server that falls silent costs the proof",
        _HEARTBEAT.replace("1 / 3", "2 / 3"),
        f"{_TEST_SESSION_PROOF}::test_server_that_falls_silent_costs_no_proof",
    ),
    Promise.PROGRESS.broken_if(
        "proofs wait for the loop",
        _SESSION["_request"].replace(
            "self._heartbeat.prove(session_id, ...)", "self._heartbeat.prove(0, ...)"
        ),
        f"{_TEST_SESSION_PROOF}::test_read_proves_nothing",
    ),
    Promise.SELF_FENCE.broken_if(
        "a read proves the session",
        _REQUESTS["get"].replace(
            "self._request('get', ...)", "self._request('get', ..., Proof.OF_SESSION)"
        ),
        f"{_TEST_SESSION_PROOF}::test_read_proves_nothing",
    ),
    Promise.SELF_FENCE.broken_if(
        "a sync on a new connection proves the session",
        _HEARTBEAT["prove"].replace(
            "self._is_confirmed and (session_id != self.proof[0] or sent > self.proof[1])",
            "session_id != self.proof[0] or sent > self.proof[1]",
        ),
        f"{_TEST_SESSION_ZOMBIE}::test_sync_alone_proves_no_session_on_a_new_connection",
    ),
    Promise.PROGRESS.broken_if(
        "a connection that has outlived its session is kept",
        _CLIENT["doubt"].drop("self.drop_connection()"),
        f"{_TEST_SESSION_ZOMBIE}::test_connection_without_a_session_is_left[multi]",
    ),
    Promise.SELF_FENCE.broken_if(
        "a transaction that the session has not outlived proves it",
        _WIRE["says_expired"].replace(
            "[error, *answer] if isinstance(answer, list) else [error]", "[error]"
        ),
        f"{_TEST_SESSION_ZOMBIE}::test_connection_without_a_session_is_left[multi]",
    ),
    Promise.PROGRESS.broken_if(
        "one callback that fails keeps everything behind it",
        _SESSION["_drain"].replace("Exception", "ZeroDivisionError"),
        f"{_TEST_SESSION_ZOMBIE}::test_callback_that_fails_keeps_nothing_else",
    ),
    Promise.FENCED_OWNERSHIP.broken_if(
        "the epoch is a constant",
        _OWNERSHIP["_create"].replace("created.czxid", "1"),
        f"{_TEST_OWNERSHIP}::test_partition_is_handed_over_once_and_the_epoch_grows",
    ),
    Promise.FENCED_OWNERSHIP.broken_if(
        "a new beginning keeps the epoch of the old one",
        _OWNERSHIP["_create"].drop("node.stat.czxid > hold.turn.last_epoch"),
        f"{_TEST_OWNERSHIP}::test_session_that_goes_on_after_doubt_gets_a_new_epoch",
    ),
    Promise.FENCED_OWNERSHIP.broken_if(
        "somebody else's owner node is taken for our own",
        _OWNERSHIP["_create"].never("node.stat.session_id != self._session.session_id"),
        f"{_TEST_OWNERSHIP_RELEASE}::test_owner_node_of_another_session_is_left_alone",
    ),
    Promise.FENCED_OWNERSHIP.broken_if(
        "a partition is given up before its work is",
        (
            _OWNERSHIP["_keep"].replace(
                "del self._epochs[partition]\n"
                "hold.turn.may_stand = not await self._delete(partition)",
                "del self._epochs[partition]",
            ),
            _OWNERSHIP["_keep"].replace(
                "await self._guarded('on_released', ...)",
                "await self._delete(partition)\nawait self._guarded('on_released', ...)",
            ),
        ),
        f"{_TEST_OWNERSHIP_RELEASE}::test_nobody_owns_a_partition_while_its_old_owner_finishes",
    ),
    Promise.FENCED_OWNERSHIP.broken_if(
        "all actors of a session work on a node at once",
        (
            _TURNS["queue"].always("place.queue[0] is turn"),
            _TURNS["is_current"].replace(
                "bool(self._place.queue) and self._place.queue[0] is self", "True"
            ),
        ),
        f"{_TEST_SHARED_SESSION}::"
        "test_second_candidate_of_a_session_waits_until_the_first_has_left",
    ),
    Promise.FENCED_OWNERSHIP.broken_if(
        "an actor that loses its node lets the next one of its session begin too early",
        _OWNERSHIP["_lose"].replace(
            "hold.is_lost = True\nhold.task.cancel()",
            "hold.is_lost = True\nhold.task.cancel()\nhold.turn.end()",
        ),
        f"{_TEST_SHARED_SESSION}::"
        "test_candidates_of_a_session_that_expires_lead_one_after_the_other",
    ),
    Promise.FENCED_OWNERSHIP.broken_if(
        "two actors of a session in doubt have one epoch",
        _OWNERSHIP["_lose"].drop("hold.turn.may_stand = True"),
        f"{_TEST_SHARED_SESSION}::test_candidates_of_a_session_in_doubt_have_epochs_of_their_own",
    ),
    Promise.PROGRESS.broken_if(
        "a block left in doubt of its session leaves its node behind",
        _OWNERSHIP["_end"].never("self._leftover"),
        f"{_TEST_SHARED_SESSION}::"
        "test_candidate_that_leaves_a_session_in_doubt_leaves_no_node_behind",
    ),
    Promise.PROGRESS.broken_if(
        "an exit that is cancelled leaves the loops of an ownership behind",
        _OWNERSHIP["__aexit__"].drop("await self.abandon()"),
        f"{_HISTORIES}[seats]",
    ),
    Promise.PROGRESS.broken_if(
        "a group left in doubt of its session leaves its registration behind",
        _GROUP["_end"].drop("await self._store.deregister(self._registered_id)"),
        f"{_HISTORIES}[shares]",
    ),
    Promise.PROGRESS.broken_if(
        "a partition that is wanted again and again leaves a watch each time",
        _OWNERSHIP["_create"].replace(
            "_NodeWatch(self, partition)", "lambda _: hold.recheck.set()"
        ),
        "tests/unit/coordination/actors/test_watches_of_a_partition.py::"
        "test_partition_of_another_session_that_is_wanted_again_and_again_has_one_watch",
    ),
    Promise.PROGRESS.broken_if(
        "a hold that fails unexpectedly keeps its turn for ever",
        _OWNERSHIP["_hold"].replace("(Exception, asyncio.CancelledError)", "ZeroDivisionError"),
        f"{_TEST_OWNERSHIP}::test_hold_that_fails_unexpectedly_gives_its_turn_and_is_tried_again",
    ),
    Promise.FENCED_OWNERSHIP.broken_if(
        "a member takes the node of another one of its session for its own",
        _MEMBERSHIP["_run"].drop("await turn.has_come.wait()"),
        f"{_TEST_SHARED_SESSION}::"
        "test_second_member_of_a_session_with_the_same_id_waits_for_the_first",
    ),
    Promise.ONE_LIVE_ATTEMPT.broken_if(
        "two queues of a session claim a task whose answer was lost",
        _QUEUE["_is_known"].replace("self._peers", "[self]"),
        f"{_TEST_SHARED_SESSION}::"
        "test_claim_whose_answer_was_lost_belongs_to_one_queue_of_the_session",
    ),
    Promise.FENCED_OWNERSHIP.broken_if(
        "another owner's node confirms that we own",
        _OWNERSHIP["confirmed"].replace(
            "stat.czxid == epochs.get(partition)", "partition in epochs"
        ),
        f"{_TESTS}/group/test_fair_share.py::test_owner_node_has_the_data_and_confirms_the_owner",
    ),
    Promise.SELF_FENCE.broken_if(
        "nobody waits after an owner that vanished",
        _OWNERSHIP["_acquire"].replace(
            "vanished_at + self._takeover_delay_s - time.monotonic()", "0.0"
        ),
        f"{_TEST_OWNERSHIP}::test_takeover_waits_after_an_owner_that_vanished",
    ),
    Promise.ONE_LIVE_ATTEMPT.broken_if(
        "results of a transaction are not looked at",
        _REQUESTS["multi"].replace(
            "raise failure",
            "return [Created(p, 0, 0) if type(o) is Create else None for p, o in "
            "zip(paths, operations)]",
        ),
        f"{_TEST_SESSION}::test_multi_with_one_bad_operation_does_nothing",
        f"{_TEST_QUEUE}::test_racing_claimers_get_each_entry_once",
    ),
    Promise.PROGRESS.broken_if(
        "a claim does not end with its session",
        _QUEUE["_take"].drop("ephemeral=True"),
        f"{_TEST_QUEUE}::test_claims_vanish_when_the_session_expires",
    ),
    Promise.ONE_LIVE_ATTEMPT.broken_if(
        "somebody else's claim is taken for one whose answer was lost",
        _QUEUE["_recover"].replace(
            "node is not None and node.stat.session_id == self._session.session_id and "
            "(node.data == worker_id.encode()) and "
            "(not self._is_known(entry.task_instance_id, node.stat.czxid))",
            "node is not None and not self._is_known(entry.task_instance_id, node.stat.czxid)",
        ),
        f"{_TEST_QUEUE_RECOVERY}::test_claim_that_somebody_else_made_meanwhile_is_theirs",
    ),
    Promise.ONE_LIVE_ATTEMPT.broken_if(
        "a claim that died with its session counts",
        _QUEUE["_recover"].never("self._session.generation != generation"),
        f"{_TEST_QUEUE}::test_claim_that_died_with_its_session_says_so",
    ),
    Promise.ONE_LIVE_ATTEMPT.broken_if(
        "every put of an entry makes a new name",
        _PUTTING["_put_singly"].replace(
            "self._session.create(entry.path)", "self._session.create(entry.path, sequential=True)"
        ),
        f"{_TEST_QUEUE}::test_put_twice_is_one_entry",
    ),
    Promise.PROGRESS.broken_if(
        "a project stands in line behind the backlog of another one",
        _WINDOW["entries"].replace(
            "self._turns[priority].merged(by_priority[priority])",
            "sorted(e for line in by_priority[priority].values() for e in line)",
        ),
        f"{_LANE_TESTS}::test_task_of_another_project_is_next[True]",
        f"{_LANE_TESTS}::test_lanes_are_shared_fairly_until_both_are_used_up",
    ),
    Promise.PROGRESS.broken_if(
        "less urgent entries are read while a lane of urgent ones was read in part",
        _READER["_read_priority"].never("cut and found.count < count"),
        f"{_LANE_TESTS}::test_no_lane_brings_less_urgent_tasks_forward",
    ),
    Promise.PROGRESS.broken_if(
        "entries that cannot be claimed now hide those behind them in their lane",
        _READER["add"].replace("self._is_wanted(entry)", "1"),
        f"{_LANE_TESTS}::test_first_ones_of_a_lane_that_are_left_out_do_not_hide_the_others",
    ),
    Promise.PROGRESS.broken_if(
        "lanes whose front cannot be claimed are read at each claim",
        _READER["first"].replace("found.count < count", "False"),
        f"{_LANE_TESTS}::test_lanes_whose_front_cannot_be_claimed_are_not_read_at_each_claim",
    ),
    Promise.PROGRESS.broken_if(
        "a lane whose front cannot be claimed is read at each claim from another lane",
        _WINDOW["is_used_up"].drop("self.is_hidden"),
        f"{_LANE_TESTS}::"
        "test_lane_whose_front_cannot_be_claimed_is_not_read_at_each_claim_of_a_long_one",
    ),
    Promise.PROGRESS.broken_if(
        "a claimer beside others reads at each claim though readings are long",
        _WINDOW["others_may_have_taken"].drop("self.is_costly"),
        f"{_LANE_TESTS}::"
        "test_claimers_do_not_read_a_lane_whose_front_cannot_be_claimed_at_each_claim",
    ),
    Promise.PROGRESS.broken_if(
        "a claimer reads after each collision though readings are long",
        _HEAD["is_costly"].replace("self._trust.is_costly", "False"),
        f"{_LANE_TESTS}::"
        "test_claimers_do_not_read_a_lane_whose_front_cannot_be_claimed_at_each_claim",
    ),
    Promise.PROGRESS.broken_if(
        "a lane whose front could not be claimed is never searched again",
        _HEAD["changes_in_s"].never("is_hidden"),
        f"{_LANE_TESTS}::test_lanes_whose_front_cannot_be_claimed_are_not_read_at_each_claim",
        f"{_LANE_TESTS}::test_wait_ends_when_hidden_tasks_may_have_come_forward_and_not_before",
    ),
    Promise.PROGRESS.broken_if(
        "a less urgent task is not noticed behind a lane whose front cannot be claimed",
        _WINDOW["fill"].replace("LOWEST if is_searched else least", "least"),
        f"{_LANE_TESTS}::"
        "test_tasks_of_any_priority_are_noticed_beside_a_lane_whose_front_cannot_be_claimed",
    ),
    Promise.PROGRESS.broken_if(
        "a task that stands in two places is chosen twice",
        _WINDOW["fill"].drop("entry.task_instance_id not in seen"),
        f"{_LANE_TESTS}::test_tasks_that_stand_in_two_places_are_claimed_once",
    ),
    Promise.PROGRESS.broken_if(
        "a lane that was away keeps turns that it did not take",
        _LANES["merged"].drop("self.keep(lines.keys())"),
        "tests/unit/coordination/test_lanes.py::"
        "test_lane_that_was_away_has_no_credit_for_what_the_only_other_one_took",
    ),
    Promise.NOTHING_LOST.broken_if(
        "the only entry of a queued task is removed because it stands in another place",
        _SWEEPER["_stale"].replace("entry.task_instance_id not in only", "True"),
        "tests/integration/master/upkeep/test_sweep.py::"
        "test_entries_in_the_buckets_of_an_earlier_version_give_way",
    ),
    Promise.PROGRESS.broken_if(
        "a lane that is used up as far as it was read is left out",
        _HEAD["_is_stale"].drop("window.has_gap"),
        f"{_LANE_TESTS}::test_lane_is_read_again_when_it_is_used_up_before_another_one",
    ),
    Promise.PROGRESS.broken_if(
        "of a large put only the first lane is noticed",
        _HEAD["_names_all"].replace(
            "any(map(self._window.reaches, put.entries))",
            "self._window.reaches(put.entries[0])",
        ),
        f"{_LANE_TESTS}::test_large_put_of_many_projects_is_noticed",
    ),
    Promise.PROGRESS.broken_if(
        "a queue is looked at only when its notification arrives",
        _HEAD["_is_stale"].drop("self._trust.is_expired"),
        f"{_TEST_QUEUE_RECOVERY}::"
        "test_entry_whose_notification_was_not_heard_is_found_all_the_same",
    ),
    Promise.ONE_LIVE_ATTEMPT.broken_if(
        "the node of another process with our name is deleted",
        _MEMBERSHIP["_register"].replace(
            "_decode(node.data).get(INCARNATION) == self._incarnation", "True"
        ),
        f"{_TESTS}/test_membership.py::test_node_of_another_process_with_our_id_is_waited_for",
    ),
    Promise.FENCED_OWNERSHIP.broken_if(
        "a leader's transactions do not carry its epoch",
        (
            _FENCE["_raise"].replace("Check(path, node.stat.version)", "Check(path)"),
            _FENCE["_raise"].drop("stat.version"),
        ),
        f"{_TEST_ELECTION}::test_writes_of_an_old_leader_are_refused",
    ),
    Promise.FENCED_OWNERSHIP.broken_if(
        "a former leader raises the fence again",
        _FENCE["_raise"].never("stored > epoch"),
        f"{_TEST_ELECTION}::test_old_epoch_cannot_raise_the_fence_again",
    ),
    Promise.FENCED_OWNERSHIP.broken_if(
        "a message is acknowledged by a consumer that had it once",
        _OWNED["_fenced"].drop("self._fence"),
        f"{_TESTS}/messages/test_messages.py::test_the_server_itself_refuses_an_old_owner",
    ),
)

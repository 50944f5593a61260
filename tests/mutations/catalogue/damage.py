"""What stands in ZooKeeper is deleted, overwritten, or open to strangers."""

from tests.mutations.mutation import Mutation, Promise, mutation

_COORDINATION = "coordination/shoal/coordination"
_OWNERSHIP = f"{_COORDINATION}/recipes/ownership.py"
_STORE = f"{_COORDINATION}/group/store.py"
_SERVER = "client/shoal/client/local/zookeeper.py"
_TESTS = "tests/integration/coordination"
_CLOSED = "tests/integration/client/test_closed_zookeeper.py"

MUTATIONS: tuple[Mutation, ...] = (
    mutation(
        "an owner does not notice that its node is gone",
        Promise.PROGRESS,
        _OWNERSHIP,
        ("elif stat is None or stat.czxid != epoch:", "elif False:"),
        (
            f"{_TESTS}/test_nodes_deleted.py::"
            "test_owner_whose_nodes_are_deleted_loses_those_and_takes_them_again",
        ),
    ),
    mutation(
        "an owner takes another session's node for its own",
        Promise.FENCED_OWNERSHIP,
        _OWNERSHIP,
        ("elif stat is None or stat.czxid != epoch:", "elif stat is None:"),
        (
            f"{_TESTS}/test_nodes_deleted.py::"
            "test_owner_whose_node_is_replaced_by_another_session_stops",
        ),
    ),
    mutation(
        "owner nodes are read only when a watch fires",
        Promise.PROGRESS,
        _OWNERSHIP,
        (
            "partitions = self._unwatched if self._has_unwatched.is_set() else self._epochs.keys()",
            "partitions = self._unwatched",
        ),
        (f"{_TESTS}/test_nodes_deleted.py::test_owner_notices_although_no_watch_fires",),
    ),
    mutation(
        "a lasting node at an owner's place counts as an owner",
        Promise.PROGRESS,
        _OWNERSHIP,
        ("        if not node.stat.session_id:\n", "        if False:\n"),
        (f"{_TESTS}/test_nodes_deleted.py::test_lasting_node_at_an_owners_place_is_nobodys",),
    ),
    mutation(
        "a damaged group ends its members",
        Promise.PROGRESS,
        _STORE,
        ("await self._begin_anew(node, str(error))", "raise"),
        (
            "tests/integration/master/test_junk_znodes.py::"
            "test_twelve_bytes_in_the_masters_group_stop_nobody",
        ),
    ),
    mutation(
        "a group is taken as it stands, however impossible",
        Promise.PROGRESS,
        _STORE,
        ("if problem := implausible(group, now_s, registered):", "if problem := None:"),
        (f"{_TESTS}/test_damaged_group.py::test_impossible_state_is_quarantined",),
    ),
    mutation(
        "what only looks like an entry is one",
        Promise.PROGRESS,
        f"{_COORDINATION}/queue/entry.py",
        (
            "if instance // BUCKET != outer_bucket or task // BUCKET != inner_bucket:",
            "if False:",
        ),
        ("tests/unit/coordination/test_queue_entry.py::test_what_is_no_entry_is_refused",),
    ),
    mutation(
        "foreign names stay in the queue",
        Promise.PROGRESS,
        f"{_COORDINATION}/queue/reading.py",
        (
            "self._pruner.remove(path, str(error), self._on_repaired)",
            "_ = error",
        ),
        (
            "tests/integration/master/test_junk_znodes.py::"
            "test_many_foreign_names_do_not_hide_the_entries_behind_them",
        ),
    ),
    mutation(
        "nobody makes a lost tree anew",
        Promise.PROGRESS,
        f"{_COORDINATION}/cluster/tree.py",
        ("await layout.make(session, self.partitions, self.binding)", "pass"),
        (f"{_TESTS}/test_tree_lost.py::test_everybody_goes_on_after_the_tree_was_deleted",),
    ),
    mutation(
        "who has seen more than an emptied ensemble never comes back",
        Promise.PROGRESS,
        f"{_COORDINATION}/session/client.py",
        ("self.client.last_zxid = 0", "pass"),
        (f"{_TESTS}/test_tree_lost.py::test_everybody_goes_on_after_the_ensemble_was_wiped",),
    ),
    mutation(
        "a server that says nothing is waited for until the session is over",
        Promise.PROGRESS,
        f"{_COORDINATION}/session/client.py",
        ("_ATTEMPT = 1 / 3", "_ATTEMPT = 1.0"),
        (f"{_TESTS}/test_session.py::test_server_that_says_nothing_does_not_cost_the_session",),
    ),
    mutation(
        "an answer that cannot be understood ends the thread of the connection",
        Promise.PROGRESS,
        f"{_COORDINATION}/session/client.py",
        (
            "                self.client._session_callback(KeeperState.CONNECTING)\n"
            "            return None",
            "                pass\n            raise",
        ),
        (
            f"{_TESTS}/test_session.py::"
            "test_answer_to_no_request_costs_the_connection_and_nothing_else",
        ),
    ),
    mutation(
        "requests of a new connection are numbered as those of the one before",
        Promise.PROGRESS,
        f"{_COORDINATION}/session/client.py",
        (
            '        self._received = b""\n        refused_since',
            '        self._received, self._sequence = b"", 0\n        refused_since',
        ),
        (f"{_TESTS}/test_session.py::test_numbers_of_requests_go_on_after_a_reconnect",),
    ),
    mutation(
        "somebody else's tree is repaired",
        Promise.NOTHING_LOST,
        f"{_COORDINATION}/cluster/layout.py",
        ("    if counted is None:\n", "    counted = counted or 1\n    if counted is None:\n"),
        (f"{_TESTS}/test_tree_lost.py::test_a_tree_that_is_not_ours_is_left_alone",),
    ),
    mutation(
        "nodes are made without an access list",
        Promise.SECRETS_STAY,
        f"{_COORDINATION}/session/wire.py",
        (
            "return _Create(path, data, acl.bytes, flags)",
            "return _Create(path, data, OPEN.bytes, flags)",
        ),
        (f"{_CLOSED}::test_no_node_is_open",),
    ),
    mutation(
        "the root stays open to strangers",
        Promise.SECRETS_STAY,
        f"{_COORDINATION}/cluster/closing.py",
        (
            "await _each(session, acl, some)",
            'await _each(session, acl, [p for p in some if p != "/"])',
        ),
        (f"{_CLOSED}::test_no_node_is_open",),
    ),
    mutation(
        "a tree that an earlier version left open stays so",
        Promise.SECRETS_STAY,
        _SERVER,
        ("self._closing.start()", "self._closing = None"),
        (f"{_CLOSED}::test_open_tree_of_an_earlier_version_is_closed_at_the_next_start",),
    ),
    mutation(
        "who shows nothing is served",
        Promise.SECRETS_STAY,
        _SERVER,
        ('"enforce.auth.enabled": "true"', '"enforce.auth.enabled": "false"'),
        (f"{_CLOSED}::test_stranger_is_refused_everything",),
    ),
    mutation(
        "the cluster is fine without owners",
        Promise.PROGRESS,
        "api/shoal/api/routes/health.py",
        ("fine and partitions.ok and commands.ok and not", "fine and commands.ok and not"),
        (
            "tests/integration/api/test_standstill.py::"
            "test_partitions_without_an_owner_for_long_degrade_the_cluster",
        ),
    ),
    mutation(
        "a loop of the library that fails has ended",
        Promise.PROGRESS,
        f"{_COORDINATION}/background.py",
        (
            "            await asyncio.sleep(RESTART_S)\n        else:\n            return",
            "            await asyncio.sleep(RESTART_S)\n        return",
        ),
        ("tests/unit/coordination/test_background.py::test_loop_that_fails_begins_again",),
    ),
    mutation(
        "a registration that was quarantined is taken for known",
        Promise.PROGRESS,
        _STORE,
        ("self._of_sessions = known | of_sessions", "self._of_sessions = view.names"),
        (
            f"{_TESTS}/test_group_store.py::"
            "test_registration_that_lasts_goes_each_time_that_it_comes",
        ),
    ),
)

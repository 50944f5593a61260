"""What stands in ZooKeeper is deleted, overwritten, or open to strangers."""

from tests.mutations.mutation import Mutation, Promise
from tests.mutations.place import Place

_OWNERSHIP = Place("shoal.coordination.recipes.ownership")
_STORE = Place("shoal.coordination.group.store")
_ENTRY = Place("shoal.coordination.queue.entry")
_READING = Place("shoal.coordination.queue.reader")
_TREE = Place("shoal.coordination.cluster.tree")
_CLIENT = Place("shoal.coordination.session.client")
_LAYOUT = Place("shoal.coordination.cluster.layout")
_WIRE = Place("shoal.coordination.session.wire")
_CLOSING = Place("shoal.coordination.cluster.access_control")
_SERVER = Place("shoal.client.local.zookeeper")
_HEALTH = Place("shoal.api.routes.health")
_BACKGROUND = Place("shoal.coordination.background")
_TESTS = "tests/integration/coordination"
_CLOSED = "tests/integration/client/test_closed_zookeeper.py"
_TEST_NODES_DELETED = f"{_TESTS}/session/test_nodes_deleted.py"
_TEST_JUNK_ZNODES = "tests/integration/master/membership/test_junk_znodes.py"
_TEST_TREE_LOST = f"{_TESTS}/session/test_tree_lost.py"
_TEST_SESSION = f"{_TESTS}/session/test_session.py"

MUTATIONS: tuple[Mutation, ...] = (
    Promise.PROGRESS.broken_if(
        "an owner does not notice that its node is gone",
        _OWNERSHIP["_nodeless"].never("stat is None or stat.czxid != epoch"),
        f"{_TEST_NODES_DELETED}::"
        "test_owner_whose_nodes_are_deleted_loses_those_and_takes_them_again",
    ),
    Promise.FENCED_OWNERSHIP.broken_if(
        "an owner takes another session's node for its own",
        _OWNERSHIP["_nodeless"].drop("stat.czxid != epoch"),
        f"{_TEST_NODES_DELETED}::test_owner_whose_node_is_replaced_by_another_session_stops",
    ),
    Promise.PROGRESS.broken_if(
        "owner nodes are read only when a watch fires",
        _OWNERSHIP["_follow_nodes"].replace(
            "self._unwatched if self._has_unwatched.is_set() else self._next_part()",
            "self._unwatched",
        ),
        f"{_TEST_NODES_DELETED}::test_owner_notices_although_no_watch_fires",
    ),
    Promise.PROGRESS.broken_if(
        "a lasting node at an owner's place counts as an owner",
        _OWNERSHIP["_create"].never("not node.stat.session_id"),
        f"{_TEST_NODES_DELETED}::test_lasting_node_at_an_owners_place_is_nobodys",
    ),
    Promise.PROGRESS.broken_if(
        "a damaged group ends its members",
        _STORE["read"].replace("await self._begin_anew(node, str(error))", "raise"),
        f"{_TEST_JUNK_ZNODES}::test_twelve_bytes_in_the_masters_group_stop_nobody",
    ),
    Promise.PROGRESS.broken_if(
        "a group is taken as it stands, however impossible",
        _STORE["read"].replace("implausible(group, now_s, registered)", "None"),
        f"{_TESTS}/group/test_damaged_group.py::test_impossible_state_is_quarantined",
    ),
    Promise.PROGRESS.broken_if(
        "what only looks like an entry is one",
        _ENTRY["parse"].never(
            "instance // BUCKET != outer_bucket or task // BUCKET != inner_bucket"
        ),
        "tests/unit/coordination/test_queue_entry.py::test_what_is_no_entry_is_refused",
    ),
    Promise.PROGRESS.broken_if(
        "foreign names stay in the queue",
        _READING["_add_all"].replace("self._pruner.remove(...)", "_ = error"),
        f"{_TEST_JUNK_ZNODES}::test_many_foreign_names_do_not_hide_the_entries_behind_them",
    ),
    Promise.PROGRESS.broken_if(
        "nobody makes a lost tree anew",
        _TREE["mend"].drop("await layout.make(...)"),
        f"{_TEST_TREE_LOST}::test_everybody_goes_on_after_the_tree_was_deleted",
    ),
    Promise.PROGRESS.broken_if(
        "who has seen more than an emptied ensemble never comes back",
        _CLIENT["_connect"].drop("self.client.last_zxid = 0"),
        f"{_TEST_TREE_LOST}::test_everybody_goes_on_after_the_ensemble_was_wiped",
    ),
    Promise.PROGRESS.broken_if(
        "a server that says nothing is waited for until the session is over",
        _CLIENT.replace("1 / 3", "1.0"),
        f"{_TEST_SESSION}::test_server_that_says_nothing_does_not_cost_the_session",
    ),
    Promise.PROGRESS.broken_if(
        "an answer that cannot be understood ends the thread of the connection",
        _CLIENT["_connect_attempt"].replace(
            "if self.client._state != KeeperState.CONNECTING:\n"
            "    self.client._session_callback(KeeperState.CONNECTING)\n"
            "return None",
            "if self.client._state != KeeperState.CONNECTING:\n    pass\nraise",
        ),
        f"{_TEST_SESSION}::test_answer_to_no_request_costs_the_connection_and_nothing_else",
    ),
    Promise.PROGRESS.broken_if(
        "requests of a new connection are numbered as those of the one before",
        _CLIENT["_connect"].replace(
            "self._received = b''", "self._received, self._sequence = (b'', 0)"
        ),
        f"{_TEST_SESSION}::test_numbers_of_requests_go_on_after_a_reconnect",
    ),
    Promise.NOTHING_LOST.broken_if(
        "somebody else's tree is repaired",
        _LAYOUT["find_config"].replace("counted = ...", "counted = ...\ncounted = counted or 1"),
        f"{_TEST_TREE_LOST}::test_a_tree_that_is_not_ours_is_left_alone",
    ),
    Promise.SECRETS_STAY.broken_if(
        "nodes are made without an access list",
        _WIRE["create"].replace("acl.bytes", "OPEN.bytes"),
        f"{_CLOSED}::test_no_node_is_open",
    ),
    Promise.SECRETS_STAY.broken_if(
        "the root stays open to strangers",
        _CLOSING["_close"].replace(
            "_each(session, acl, some)", "_each(session, acl, [p for p in some if p != '/'])"
        ),
        f"{_CLOSED}::test_no_node_is_open",
    ),
    Promise.SECRETS_STAY.broken_if(
        "a tree is not closed when the server starts",
        _SERVER["start"].replace("self._closing.start()", "self._closing = None"),
        f"{_CLOSED}::test_no_node_is_open",
    ),
    Promise.SECRETS_STAY.broken_if(
        "who shows nothing is served",
        _SERVER["_config"].replace("'true'", "'false'"),
        f"{_CLOSED}::test_stranger_is_refused_everything",
    ),
    Promise.PROGRESS.broken_if(
        "the cluster is fine without owners",
        _HEALTH["_look"].drop("(HealthCode.PARTITIONS, partitions)"),
        "tests/integration/api/cluster/test_standstill.py::"
        "test_partitions_without_an_owner_for_long_degrade_the_cluster",
    ),
    Promise.PROGRESS.broken_if(
        "a loop of the library that fails has ended",
        _BACKGROUND["_again_and_again"].replace(
            "try:\n    ...\nexcept (Exception, asyncio.CancelledError) as error:\n    ...\n"
            "else:\n    return",
            "try:\n    ...\nexcept (Exception, asyncio.CancelledError) as error:\n    ...\nreturn",
        ),
        "tests/unit/coordination/test_background.py::test_loop_that_fails_begins_again",
    ),
    Promise.PROGRESS.broken_if(
        "a registration that was quarantined is taken for known",
        _STORE["_remove_lasting"].replace("known | of_sessions", "view.names"),
        f"{_TESTS}/group/test_group_store.py::test_registration_that_lasts_goes_each_time_that_it_comes",
    ),
)

"""What ZooKeeper would not accept is not sent, and to a stranger in its place nothing."""

from tests.mutations.mutation import Mutation, Promise
from tests.mutations.place import Place

_WIRE = Place("shoal.coordination.session.wire")
_CLIENT = Place("shoal.coordination.session.client")
_OWNERSHIP = Place("shoal.coordination.recipes.ownership")
_OWNED = Place("shoal.coordination.messages.owned")
_TREE = Place("shoal.coordination.cluster.tree")
_MEMBER = Place("shoal.coordination.cluster.membership")
_STORE = Place("shoal.coordination.group.store")
_MEMBERSHIP = Place("shoal.coordination.group.membership")
_GROUP_LIMITS = "tests/integration/coordination/group/test_group_limits.py"
_FINAL = "tests/integration/coordination/test_final_errors.py"
_OBSTACLES = "tests/integration/coordination/session/test_obstacles.py"
_CREDENTIALS = "tests/integration/coordination/session/test_credentials.py"
_LIMITS = "tests/integration/coordination/session/test_limits.py"

_SECURE = "tests/integration/coordination/session/test_secure.py"

MUTATIONS: tuple[Mutation, ...] = (
    Promise.SECRETS_STAY.broken_if(
        "a ZooKeeper server is believed whatever its certificate says",
        Place("shoal.coordination.session.security.tls")["context"].replace(
            "ssl.create_default_context(cafile=self.ca)", "ssl._create_unverified_context()"
        ),
        f"{_SECURE}::test_a_server_that_is_not_the_right_one_gets_nothing"
        "[another name-UntrustedServer]",
    ),
    Promise.SECRETS_STAY.broken_if(
        "a ZooKeeper server need not know the password",
        Place("shoal.coordination.session.security.digest_md5")["verify"].never(
            "not self._proof or not hmac.compare_digest(shown, self._proof)"
        ),
        "tests/unit/coordination/session/test_digest_md5.py"
        "::test_a_server_has_to_prove_that_it_knows_the_password",
    ),
    Promise.PROGRESS.broken_if(
        "a request that is too large for the server is sent",
        _WIRE["serialize"].never("size > limit"),
        f"{_LIMITS}::test_a_session_may_be_given_another_limit",
    ),
    Promise.PROGRESS.broken_if(
        "a name that no name service can encode ends the client for good",
        _CLIENT["_expand_client_hosts"].replace("(OSError, UnicodeError)", "OSError"),
        f"{_OBSTACLES}::test_a_name_that_cannot_be_resolved",
    ),
    Promise.PROGRESS.broken_if(
        "a start waits without limit for servers that are asked what is in the way",
        Place("shoal.coordination.session.session", "__aenter__").replace(
            "asyncio.timeout(obstacles.PROBE_S)", "asyncio.timeout(None)"
        ),
        f"{_OBSTACLES}::test_questions_to_servers_hold_up_an_error_for_a_limited_time",
    ),
    Promise.PROGRESS.broken_if(
        "an API goes on with a session that is refused for good",
        Place("shoal.api.main", "serve_app").replace("{serving, told, failed}", "{serving, told}"),
        "tests/integration/api/web/test_serve.py::test_a_refused_credential_ends_the_process",
    ),
    Promise.SELF_FENCE.broken_if(
        "a callback that ignores its cancellation holds up the loss of all partitions",
        _OWNERSHIP["_Hold.raise_lost"].never("self.is_lost"),
        "tests/integration/coordination/test_ownership_release.py::"
        "test_a_callback_that_swallows_its_cancellation_holds_up_no_loss",
    ),
    Promise.PROGRESS.broken_if(
        "a listener that awaits a cancelled task ends its member",
        Place("shoal.coordination.group.listener", "_call").replace(
            "(Exception, asyncio.CancelledError)", "Exception"
        ),
        "tests/unit/coordination/group/test_held_partitions.py::"
        "test_a_callback_that_awaits_a_cancelled_task_ends_no_member",
    ),
    Promise.PROGRESS.broken_if(
        "a member whose exit is cancelled leaves its node behind",
        _MEMBER["__aexit__"].replace("is_in_doubt = True", "is_in_doubt = False"),
        "tests/integration/coordination/test_membership.py::"
        "test_an_exit_that_is_cancelled_leaves_no_member_and_no_turn",
    ),
    Promise.PROGRESS.broken_if(
        "junk is taken for the id of another cluster's tree",
        Place("shoal.coordination.cluster.layout", "read_config").replace(
            "_ID.fullmatch(one)", "one"
        ),
        "tests/unit/coordination/test_binding.py::test_ids_that_cannot_be_read_count_as_missing",
    ),
    Promise.PROGRESS.broken_if(
        "what is wanted while a block is left keeps it open",
        _OWNERSHIP["set_wanted"].replace(
            "is_ending or self._failure is not None", "self._failure is not None"
        ),
        "tests/integration/coordination/test_ownership_release.py::"
        "test_what_is_wanted_while_the_block_is_left_does_not_keep_it_open",
    ),
    Promise.PROGRESS.broken_if(
        "acquiring what is closed to us is tried forever",
        _OWNERSHIP["_acquire"].never("error.is_final"),
        f"{_FINAL}::test_a_share_of_jobs_ends_if_one_may_not_be_held",
    ),
    Promise.PROGRESS.broken_if(
        "a consumer goes on without what it may not read",
        _OWNED["_run"].never("error.is_final"),
        f"{_FINAL}::test_a_consumer_and_a_producer_end_at_what_they_may_not_read",
    ),
    Promise.PROGRESS.broken_if(
        "a tree that is closed to us is checked forever",
        _TREE["_run"].never("error.is_final"),
        f"{_FINAL}::test_a_tree_that_is_closed_while_we_run_ends_its_keeper",
    ),
    Promise.PROGRESS.broken_if(
        "a member that leaves in doubt leaves its node behind",
        _MEMBER["__aexit__"].never("is_in_doubt and turn.is_current"),
        f"{_FINAL}::test_a_member_that_leaves_in_doubt_leaves_no_node_behind",
    ),
    Promise.PROGRESS.broken_if(
        "a server that demands a credential is asked again and again",
        _CLIENT["_read_socket"].never("self.client.is_refused"),
        f"{_CREDENTIALS}::test_a_credential_that_is_refused_later_ends_the_session_for_good",
    ),
    Promise.PROGRESS.broken_if(
        "a member that makes its group too large is admitted",
        _STORE["require_room"].never("partitions > fit or not fit"),
        f"{_GROUP_LIMITS}::test_a_member_that_makes_the_group_too_large_is_refused_alone",
    ),
    Promise.PROGRESS.broken_if(
        "a member is refused for the room of one that is gone",
        _MEMBERSHIP["_decide"].replace("GroupTooLarge", "NotImplementedError"),
        f"{_GROUP_LIMITS}::test_room_that_a_dead_member_holds_is_given_to_one_that_enters",
    ),
    Promise.PROGRESS.broken_if(
        "a member that gets no thread gives up the group",
        _STORE["compute"].always("has_begun"),
        f"{_GROUP_LIMITS}::test_a_process_that_gets_no_thread_gives_up_no_group",
    ),
)

"""One database and one tree, owners that the database refuses, and health that sees both."""

from tests.mutations.mutation import Mutation, Promise
from tests.mutations.place import Place

_BINDING = Place("shoal.coordination.cluster.binding")
_ROW = Place("shoal.sql.repositories.upkeep.cluster")
_LEASE = Place("shoal.master.membership.tree_lease")
_TREE = Place("shoal.coordination.cluster.tree")
_WORKER = Place("shoal.worker.home.cluster_file")
_KEEPER = Place("shoal.master.membership.partitions")
_OWNERSHIP = Place("shoal.coordination.recipes.ownership")
_OWNERS = Place("shoal.coordination.cluster.owners")
_ROUTES_HEALTH = Place("shoal.api.routes.health")
_WATCH = Place("shoal.api.operations.cluster.ownership")
_COMMANDS = Place("shoal.sql.repositories.runs.commands")
_BOUND = "tests/integration/master/membership/test_binding.py"
_STRANDED = "tests/integration/master/membership/test_stranded.py"
_WRONG = "tests/integration/worker/faults/test_wrong_tree.py"
_HEALTH = "tests/integration/api/cluster/test_standstill.py"
_LOST = Place("shoal.master.membership.lost_commits")
_COMPOSITION = Place("shoal.master.composition")
_WATERMARKS = Place("shoal.sql.repositories.upkeep.watermarks")
_BEHIND = "tests/integration/master/membership/test_lost_commits.py"
_READER = "tests/integration/coordination/test_owners.py"

MUTATIONS: tuple[Mutation, ...] = (
    Promise.ONE_LIVE_ATTEMPT.broken_if(
        "a database that has lost commits is served as it is",
        _LOST["_compare"].replace("if missing:\n    ...", "if False:\n    ..."),
        f"{_BEHIND}::test_lost_beats_are_lost_commits_too[sqlite]",
    ),
    Promise.ONE_LIVE_ATTEMPT.broken_if(
        "a refused write does not hint at an older copy of the database",
        _COMPOSITION["on_refused"].drop("opened.lost_commits.suspect()"),
        f"{_BEHIND}::test_master_whose_write_is_refused_looks_at_once[sqlite]",
    ),
    Promise.ONE_LIVE_ATTEMPT.broken_if(
        "a master that gives partitions up waits for its next beat to compare the database",
        _COMPOSITION["on_refused"].drop("lease.look()"),
        f"{_BEHIND}::test_master_whose_write_is_refused_looks_at_once[sqlite]",
    ),
    Promise.PROGRESS.broken_if(
        "a refused write during a look of the tree's lease is forgotten",
        _LEASE["run"].replace(
            "async with asyncio.timeout(self._interval_s): ...",
            "self._look.clear()\nasync with asyncio.timeout(self._interval_s): ...",
        ),
        "tests/unit/master/test_tree_lease.py::test_refusal_during_a_look_makes_another_one_due",
    ),
    Promise.ONE_LIVE_ATTEMPT.broken_if(
        "a database that is behind is found when masters start and never later",
        _LOST["look_if_due"].never("late or self._suspicions"),
        f"{_BEHIND}::test_looks_are_a_session_timeout_apart_unless_a_write_was_refused",
    ),
    Promise.PROGRESS.broken_if(
        "an idle cluster compares the watermark at every beat",
        _LOST["look_if_due"].always("late or self._suspicions"),
        f"{_BEHIND}::test_looks_are_a_session_timeout_apart_unless_a_write_was_refused",
    ),
    Promise.ONE_LIVE_ATTEMPT.broken_if(
        "a comparison with the watermark that failed counts",
        _LOST["look"].replace(
            "await self._compare()\nself._looked_s = began_s\nself._suspicions -= seen",
            "self._looked_s = began_s\nself._suspicions -= seen\nawait self._compare()",
        ),
        f"{_BEHIND}::test_look_that_failed_stays_due",
    ),
    Promise.ONE_LIVE_ATTEMPT.broken_if(
        "ids of lost commits are given again",
        _WATERMARKS["move_beyond"].drop("await self._set_last_id(one, known + MARGIN)"),
        f"{_BEHIND}::test_ids_of_lost_commits_are_not_given_again[sqlite]",
    ),
    Promise.FENCED_OWNERSHIP.broken_if(
        "owners go on with runs that the database has lost",
        _WATERMARKS["move_beyond"].drop(
            "await self._connection.execute(update(partition).values(epoch=partition.c.epoch + 1))"
        ),
        f"{_BEHIND}::test_ids_of_lost_commits_are_not_given_again[sqlite]",
    ),
    Promise.FENCED_OWNERSHIP.broken_if(
        "a database is served from a tree of another cluster",
        _BINDING["judge"].replace(
            "if found is not None and found.cluster != stored.cluster:\n"
            "    return BindingVerdict.FOREIGN",
            "if found is not None and False:\n    pass",
        ),
        f"{_BOUND}::"
        "test_tree_of_another_cluster_is_refused_until_it_is_taken_over_knowingly[sqlite]",
    ),
    Promise.FENCED_OWNERSHIP.broken_if(
        "a tree at another path counts as the wiped one",
        _BINDING["judge"].always("path == path_of(stored.address)"),
        "tests/unit/coordination/test_binding.py::test_verdict[None-t-/typo-elsewhere]",
    ),
    Promise.FENCED_OWNERSHIP.broken_if(
        "an empty tree is bound although masters of the bound one beat",
        _BINDING["_allowed"].never("stored.beats != self._watched.beats"),
        f"{_BOUND}::test_empty_tree_is_refused_while_masters_work_elsewhere[sqlite]",
    ),
    Promise.FENCED_OWNERSHIP.broken_if(
        "an empty tree is bound without waiting for its members",
        _BINDING["_allowed"].never("now_s < self._until_s"),
        f"{_BOUND}::test_wiped_tree_is_bound_anew_when_its_masters_are_gone[sqlite]",
    ),
    Promise.FENCED_OWNERSHIP.broken_if(
        "a tree is taken over while masters of another cluster are in it",
        _BINDING["_require_no_masters"].replace("if masters:\n    ...", "if False:\n    ..."),
        f"{_BOUND}::"
        "test_tree_of_another_cluster_is_refused_until_it_is_taken_over_knowingly[sqlite]",
    ),
    Promise.PROGRESS.broken_if(
        "a binding whose answer was lost is not recognised",
        _BINDING["_try"].never("ours.tree == self._new_tree"),
        f"{_BOUND}::test_own_work_is_recognised_when_the_answer_was_lost[sqlite]",
    ),
    Promise.FENCED_OWNERSHIP.broken_if(
        "a database is bound anew although it was bound since it was read",
        _ROW["bind"].replace("c.tree == seen.tree", "c.tree.is_not(None)"),
        f"{_BOUND}::test_beat_since_it_was_read_prevents_binding[sqlite]",
    ),
    Promise.FENCED_OWNERSHIP.broken_if(
        "partitions are taken while the database is bound to another tree",
        _ROW["require_tree"].never("row is None or row.tree != tree"),
        f"{_STRANDED}::test_partition_is_not_taken_while_the_database_is_bound_elsewhere[sqlite]",
    ),
    Promise.FENCED_OWNERSHIP.broken_if(
        "a master goes on when its database is bound to another tree",
        _LEASE["_beat"].replace(
            "stored.tree != (tree := self._tree())", "(tree := self._tree()) == ''"
        ),
        f"{_BOUND}::test_cluster_is_moved_to_another_path_knowingly[sqlite]",
    ),
    Promise.PROGRESS.broken_if(
        "a lost binding is not restored",
        _TREE["mend"].never("said.binding != self.binding"),
        f"{_BOUND}::test_keeper_restores_the_binding",
    ),
    Promise.FENCED_OWNERSHIP.broken_if(
        "members mend the tree of another cluster",
        _TREE["_agrees"].never("binding.cluster != self.binding.cluster"),
        f"{_BOUND}::test_keeper_leaves_the_tree_of_another_cluster_alone[sqlite]",
    ),
    Promise.GUARDED_STATES.broken_if(
        "a worker reports to another cluster",
        _WORKER["join_tree"].never("not rebind"),
        f"{_WRONG}::test_worker_starts_in_the_trees_of_one_cluster_alone",
    ),
    Promise.GUARDED_STATES.broken_if(
        "a worker of a cluster begins in a tree that is bound to none",
        _WORKER["follow_tree"].replace("if known is None:\n    belongs.set()", "belongs.set()"),
        f"{_WRONG}::test_worker_of_a_cluster_waits_for_its_tree_to_be_bound",
    ),
    Promise.PROGRESS.broken_if(
        "an owner that is fenced keeps its znode",
        _KEEPER["give_up_fenced"].replace("if stranded:\n    ...", "if False:\n    ..."),
        f"{_STRANDED}::test_owner_that_is_fenced_while_its_znode_stands_takes_a_new_epoch",
    ),
    Promise.PROGRESS.broken_if(
        "an idle owner never learns that it is fenced",
        _KEEPER["compare"].never("stored.get(p) != epoch"),
        f"{_STRANDED}::test_idle_owner_finds_out_without_a_write",
    ),
    Promise.PROGRESS.broken_if(
        "masters in two trees take partitions from each other without a pause",
        _OWNERSHIP["_keep"].drop(
            "await _wait_any(max(0.0, until_s - time.monotonic()), hold.unwanted)"
        ),
        f"{_STRANDED}::test_pauses_grow_while_two_take_a_partition_from_each_other",
    ),
    Promise.PROGRESS.broken_if(
        "an owner in the pause keeps its znode",
        _OWNERSHIP["_keep"].replace(
            "if hold.turn.is_current:\n    hold.turn.may_stand = not await self._delete(partition)",
            "pass",
        ),
        f"{_STRANDED}::test_owner_that_is_fenced_while_its_znode_stands_takes_a_new_epoch",
    ),
    Promise.PROGRESS.broken_if(
        "refusals of former epochs cost the present ownership",
        _KEEPER["_is_taken"].drop("self._taken[partition].epoch == epoch"),
        f"{_STRANDED}::test_late_refusals_of_former_epochs_give_nothing_up",
    ),
    Promise.PROGRESS.broken_if(
        "health does not compare owners with the database",
        _OWNERS["disagreements"].never("owner.owner_id != row.owner"),
        f"{_HEALTH}::test_partitions_with_two_owners_for_long_degrade_the_cluster",
    ),
    Promise.PROGRESS.broken_if(
        "the cluster is fine while commands stay pending",
        _ROUTES_HEALTH["_look"].drop("(HealthCode.COMMANDS, commands)"),
        f"{_HEALTH}::test_commands_that_stay_pending_degrade_the_cluster",
    ),
    Promise.PROGRESS.broken_if(
        "an API in another tree than its database says ok",
        _WATCH["foreign"].always("is_bound"),
        f"{_HEALTH}::test_api_whose_database_was_bound_to_another_tree_is_not_ready",
    ),
    Promise.PROGRESS.broken_if(
        "starts that wait for a full master raise an alarm",
        _COMMANDS["overdue"].drop("c.partition.not_in(...)"),
        "tests/integration/sql/upkeep/test_overdue.py::test_starts_of_full_masters_are_not_overdue",
    ),
    Promise.PROGRESS.broken_if(
        "what watches have missed is never read again",
        _OWNERS["all_owners"].never("now_s >= self._reread_s"),
        f"{_READER}::test_only_changes_are_read",
    ),
)

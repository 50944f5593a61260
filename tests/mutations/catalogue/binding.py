"""One database and one tree, owners that the database refuses, and health that sees both."""

from tests.mutations.mutation import Mutation, Promise, mutation

_BINDING = "coordination/shoal/coordination/cluster/binding.py"
_TREE = "coordination/shoal/coordination/cluster/tree.py"
_OWNERS = "coordination/shoal/coordination/cluster/owners.py"
_OWNERSHIP = "coordination/shoal/coordination/recipes/ownership.py"
_ROW = "sql/shoal/sql/repositories/upkeep/cluster.py"
_KEEPER = "master/shoal/master/membership/partitions.py"
_LEASE = "master/shoal/master/membership/tree_lease.py"
_WORKER = "worker/shoal/worker/home/cluster_file.py"
_COMMANDS = "sql/shoal/sql/repositories/runs/commands.py"
_WATCH = "api/shoal/api/operations/health/ownership.py"
_BOUND = "tests/integration/master/test_binding.py"
_STRANDED = "tests/integration/master/test_stranded.py"
_WRONG = "tests/integration/worker/test_wrong_tree.py"
_READER = "tests/integration/coordination/test_owners.py"
_HEALTH = "tests/integration/api/test_standstill.py"

MUTATIONS: tuple[Mutation, ...] = (
    mutation(
        "a database is served from a tree of another cluster",
        Promise.FENCED_OWNERSHIP,
        _BINDING,
        (
            "found.cluster != stored.cluster:\n        return Verdict.FOREIGN",
            "False:\n        pass",
        ),
        (
            f"{_BOUND}::test_tree_of_another_cluster_is_refused_until_it_is_taken_over_knowingly"
            "[sqlite]",
        ),
    ),
    mutation(
        "a tree at another path counts as the wiped one",
        Promise.FENCED_OWNERSHIP,
        _BINDING,
        ("Verdict.WAIT if path == path_of(stored.address)", "Verdict.WAIT if True"),
        ("tests/unit/coordination/test_binding.py::test_verdict[None-t-/typo-elsewhere]",),
    ),
    mutation(
        "an empty tree is bound although masters of the bound one beat",
        Promise.FENCED_OWNERSHIP,
        _BINDING,
        ("if stored.beats != self._watched.beats:", "if False:"),
        (f"{_BOUND}::test_empty_tree_is_refused_while_masters_work_elsewhere[sqlite]",),
    ),
    mutation(
        "an empty tree is bound without waiting for its members",
        Promise.FENCED_OWNERSHIP,
        _BINDING,
        ("if now_s < self._until_s:", "if False:"),
        (f"{_BOUND}::test_wiped_tree_that_its_members_restore_stays_what_it_was[sqlite]",),
    ),
    mutation(
        "a tree is taken over while masters of another cluster are in it",
        Promise.FENCED_OWNERSHIP,
        _BINDING,
        ("        if masters:\n", "        if False:\n"),
        (
            f"{_BOUND}::test_tree_of_another_cluster_is_refused_until_it_is_taken_over_knowingly"
            "[sqlite]",
        ),
    ),
    mutation(
        "a binding whose answer was lost is not recognised",
        Promise.PROGRESS,
        _BINDING,
        ("if ours.tree == self._new_tree:", "if False:"),
        (f"{_BOUND}::test_own_work_is_recognised_when_the_answer_was_lost[sqlite]",),
    ),
    mutation(
        "a database is bound anew although it was bound since it was read",
        Promise.FENCED_OWNERSHIP,
        _ROW,
        ("is_as_seen[1] = c.tree == seen.tree", "is_as_seen[1] = c.tree.is_not(None)"),
        (f"{_BOUND}::test_beat_since_it_was_read_prevents_binding[sqlite]",),
    ),
    mutation(
        "partitions are taken while the database is bound to another tree",
        Promise.FENCED_OWNERSHIP,
        _ROW,
        ("if row is None or row.tree != tree:", "if False:"),
        (
            f"{_STRANDED}::test_partition_is_not_taken_while_the_database_is_bound_elsewhere"
            "[sqlite]",
        ),
    ),
    mutation(
        "a master goes on when its database is bound to another tree",
        Promise.FENCED_OWNERSHIP,
        _LEASE,
        ("if stored.tree != (tree := self._tree()):", "if (tree := self._tree()) == '':"),
        (f"{_BOUND}::test_cluster_is_moved_to_another_path_knowingly[sqlite]",),
    ),
    mutation(
        "a lost binding is not restored",
        Promise.PROGRESS,
        _TREE,
        ("elif said.binding != self.binding:", "elif False:"),
        (f"{_BOUND}::test_keeper_restores_the_binding",),
    ),
    mutation(
        "members mend the tree of another cluster",
        Promise.FENCED_OWNERSHIP,
        _TREE,
        ("and binding.cluster != self.binding.cluster:", "and False:"),
        (f"{_BOUND}::test_keeper_leaves_the_tree_of_another_cluster_alone[sqlite]",),
    ),
    mutation(
        "a worker reports to another cluster",
        Promise.GUARDED_STATES,
        _WORKER,
        ("            if not rebind:\n", "            if False:\n"),
        (f"{_WRONG}::test_worker_starts_in_the_trees_of_one_cluster_alone",),
    ),
    mutation(
        "a worker of a cluster begins in a tree that is bound to none",
        Promise.GUARDED_STATES,
        _WORKER,
        ("    if known is None:\n        belongs.set()\n", "    belongs.set()\n"),
        (f"{_WRONG}::test_worker_of_a_cluster_waits_for_its_tree_to_be_bound",),
    ),
    mutation(
        "an owner that is fenced keeps its znode",
        Promise.PROGRESS,
        _KEEPER,
        ("            if stranded:\n", "            if False:\n"),
        (f"{_STRANDED}::test_owner_that_is_fenced_while_its_znode_stands_takes_a_new_epoch",),
    ),
    mutation(
        "an idle owner never learns that it is fenced",
        Promise.PROGRESS,
        _KEEPER,
        ("if stored.get(p) != epoch}", "if False}"),
        (f"{_STRANDED}::test_idle_owner_finds_out_without_a_write",),
    ),
    mutation(
        "masters in two trees take partitions from each other without a pause",
        Promise.PROGRESS,
        _OWNERSHIP,
        ("await _wait_any(max(0.0, until_s - time.monotonic()), hold.unwanted)", "pass"),
        (f"{_STRANDED}::test_pauses_grow_while_two_take_a_partition_from_each_other",),
    ),
    mutation(
        "an owner in the pause keeps its znode",
        Promise.PROGRESS,
        _OWNERSHIP,
        (
            "await self._delete(partition)\n            await _wait_any(max(",
            "await _wait_any(max(",
        ),
        (f"{_STRANDED}::test_owner_that_is_fenced_while_its_znode_stands_takes_a_new_epoch",),
    ),
    mutation(
        "refusals of former epochs cost the present ownership",
        Promise.PROGRESS,
        _KEEPER,
        ("if p in self._taken and e == self._taken[p].epoch", "if p in self._taken"),
        (f"{_STRANDED}::test_late_refusals_of_former_epochs_give_nothing_up",),
    ),
    mutation(
        "health does not compare owners with the database",
        Promise.PROGRESS,
        _OWNERS,
        ("owner.owner_id != row.owner or", "False or"),
        (f"{_HEALTH}::test_partitions_with_two_owners_for_long_degrade_the_cluster",),
    ),
    mutation(
        "the cluster is fine while commands stay pending",
        Promise.PROGRESS,
        "api/shoal/api/routes/health.py",
        ("fine and partitions.ok and commands.ok and not", "fine and partitions.ok and not"),
        (f"{_HEALTH}::test_commands_that_stay_pending_degrade_the_cluster",),
    ),
    mutation(
        "an API in another tree than its database says ok",
        Promise.PROGRESS,
        _WATCH,
        ("return None if is_bound else", "return None if True else"),
        (f"{_HEALTH}::test_api_whose_database_was_bound_to_another_tree_is_not_ready",),
    ),
    mutation(
        "starts that wait for a full master raise an alarm",
        Promise.PROGRESS,
        _COMMANDS,
        ("IS_START, c.partition.not_in(sorted(full)))", "IS_START)"),
        ("tests/integration/sql/test_overdue.py::test_starts_of_full_masters_are_not_overdue",),
    ),
    mutation(
        "what watches have missed is never read again",
        Promise.PROGRESS,
        _OWNERS,
        ("if now_s >= self._reread_s:", "if False:"),
        (f"{_READER}::test_only_changes_are_read",),
    ),
)

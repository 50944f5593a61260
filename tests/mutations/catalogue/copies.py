"""Copies of a cluster: what the original owns is never removed by the copy, nor commanded."""

from tests.mutations.mutation import Mutation, Promise, mutation

_SWEEP = "master/shoal/master/services/upkeep/resources.py"
_CLAIMS = "master/shoal/master/services/upkeep/object_claims.py"
_CLUSTER = "sql/shoal/sql/repositories/upkeep/cluster.py"
_LOGS = "worker/shoal/worker/logs/folders.py"
_IN_MASTER = "tests/integration/master/test_copies.py"
_OF_CLAIMS = "tests/unit/master/test_object_claims.py"
_OF_NAMES = "tests/integration/sql/test_cluster_names.py"
_STATE = "client/shoal/client/local/state.py"
_FOLDERS = "tests/integration/client/test_copied_folders.py"
_IN_WORKER = "tests/integration/worker/test_log_keeping.py"

MUTATIONS: tuple[Mutation, ...] = (
    mutation(
        "a copy removes the original's resources",
        Promise.NOTHING_LOST,
        _SWEEP,
        ("case str(folder) if folder != cluster_folder(name.uid):", "case str() if False:"),
        (f"{_IN_MASTER}::test_upkeep_of_a_copy_removes_rows_and_nothing_of_the_originals[sqlite]",),
    ),
    mutation(
        "a copy takes inherited objects of earlier versions for its own",
        Promise.NOTHING_LOST,
        _SWEEP,
        ('if match["owner"] is None and one.id <= name.after_resource:', "if False:"),
        (
            f"{_IN_MASTER}::"
            "test_objects_of_earlier_versions_belong_to_the_cluster_that_wrote_them[sqlite]",
        ),
    ),
    mutation(
        "objects of earlier versions go without a claim",
        Promise.NOTHING_LOST,
        _SWEEP,
        ("case None if one.object not in held:", "case None if False:"),
        (
            f"{_IN_MASTER}::"
            "test_copy_that_was_named_before_the_upgrade_removes_nothing_for_long[sqlite]",
        ),
    ),
    mutation(
        "a claim counts at once",
        Promise.NOTHING_LOST,
        _CLAIMS,
        ("if own is None or not own.is_settled(now):", "if own is None:"),
        (f"{_OF_CLAIMS}::test_claim_counts_after_it_has_stood_for_long",),
    ),
    mutation(
        "what two clusters claim, both remove",
        Promise.NOTHING_LOST,
        _CLAIMS,
        ("return wanted - others", "return wanted"),
        (f"{_OF_CLAIMS}::test_what_two_clusters_claim_nobody_removes",),
    ),
    mutation(
        "a copy claims what the original has held for long",
        Promise.PROGRESS,
        _CLAIMS,
        ("wanted = set(known) - taken", "wanted = set(known)"),
        (f"{_OF_CLAIMS}::test_what_another_cluster_has_held_for_long_is_never_claimed",),
    ),
    mutation(
        "objects of two clusters have one name",
        Promise.NOTHING_LOST,
        "runtime/shoal/runtime/storage.py",
        ('return f"{cluster_folder(cluster)}/{former}"', "return former"),
        (
            "tests/unit/runtime/test_storage.py::"
            "test_objects_of_earlier_versions_are_read_and_of_each_cluster_apart",
        ),
    ),
    mutation(
        "a new name of the cluster is not noted",
        Promise.NOTHING_LOST,
        _CLUSTER,
        ("        await self._note(found)\n", ""),
        (f"{_OF_NAMES}::test_a_new_name_begins_behind_the_ids_of_the_former_one[sqlite]",),
    ),
    mutation(
        "rows that have gone do not count for the highest id",
        Promise.NOTHING_LOST,
        "sql/shoal/sql/driver/connection.py",
        ("return max([highest, *(int", "return max([highest, *(0 * int"),
        (f"{_OF_NAMES}::test_the_highest_id_counts_rows_that_have_gone[sqlite]",),
    ),
    mutation(
        "an archive that is ahead of its database is emptied",
        Promise.NOTHING_LOST,
        "master/shoal/master/services/upkeep/archived_logs.py",
        ("if instance > last:", "if False:"),
        (
            "tests/integration/master/test_archived_logs.py::"
            "test_logs_of_instances_that_there_are_not_any_more_go[sqlite]",
        ),
    ),
    mutation(
        "a worker deletes logs of another cluster",
        Promise.NOTHING_LOST,
        _LOGS,
        ("(owner or _owner_of_unnamed(self.root, cluster)) == cluster_folder(cluster)", "True"),
        (
            f"{_IN_WORKER}::test_logs_of_another_cluster_stay_by_age_and_for_space",
            f"{_IN_WORKER}::test_logs_of_earlier_versions_are_those_of_the_cluster_that_asks_first",
        ),
    ),
    mutation(
        "a log of an earlier name of the cluster is shown for a new attempt",
        Promise.NOTHING_LOST,
        "worker/shoal/worker/logs/service.py",
        (
            "if log.may_be_unnamed or not log.clusters else log.clusters",
            "if True else log.clusters",
        ),
        (
            "tests/integration/worker/test_agent_logs.py::"
            "test_log_is_found_under_the_names_that_the_cluster_has_had",
        ),
    ),
    mutation(
        "commands through a copied folder reach the original",
        Promise.NOTHING_LOST,
        _STATE,
        ("    raise CopiedFolder(data, state.path, state.api)", "    return state"),
        (
            f"{_FOLDERS}::test_commands_through_a_copy_are_refused_with_both_folders[command0]",
            f"{_FOLDERS}::test_moved_folder_of_a_stopped_cluster_is_no_copy",
        ),
    ),
    mutation(
        "an API serves requests for another data folder",
        Promise.NOTHING_LOST,
        "api/shoal/api/web/hosts.py",
        ("if named is None or own is None or named.is_same(own):", "if True:"),
        (f"{_FOLDERS}::test_api_refuses_requests_for_another_folder_with_the_same_token",),
    ),
    mutation(
        "a role in a copied folder joins the original's ZooKeeper",
        Promise.FENCED_OWNERSHIP,
        "client/shoal/client/local/roles.py",
        (
            "is_own = state is not None and (state.is_of(cluster.data) or "
            "running_state(cluster.data))",
            "is_own = True",
        ),
        (f"{_FOLDERS}::test_down_and_single_roles_in_a_copy_leave_the_original_alone",),
    ),
    mutation(
        "an address counts that was there before the supervisor",
        Promise.NOTHING_LOST,
        _STATE,
        ("if holder is not None and state and state.start == holder.start", "if holder and state"),
        (f"{_FOLDERS}::test_while_a_copy_starts_the_originals_address_does_not_count",),
    ),
    mutation(
        "down ends whatever process has the number",
        Promise.KILLED_MEANS_DEAD,
        "client/shoal/client/local/background.py",
        ("if not pid or not holds_lock(pid, data):", "if not pid:"),
        (f"{_FOLDERS}::test_supervisor_of_another_container_is_not_stopped",),
    ),
    mutation(
        "two volumes have one root",
        Promise.NOTHING_LOST,
        "runtime/shoal/runtime/folder_identity.py",
        ("return self.filesystem == other.filesystem", "return True"),
        ("tests/unit/runtime/test_folder_identity.py::test_inode_and_file_system_count",),
    ),
    mutation(
        "workers of two clusters share a spool",
        Promise.DURABLE_RESULTS,
        "worker/shoal/worker/home/home.py",
        ("if not _lock(self._spool_fd):", "if False:"),
        (
            "tests/integration/worker/test_agent_restarts.py::"
            "test_workers_of_two_data_folders_share_no_spool",
        ),
    ),
)

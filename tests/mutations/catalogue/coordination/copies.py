"""Copies of a cluster: what the original owns is never removed by the copy, nor commanded."""

from tests.mutations.mutation import Mutation, Promise
from tests.mutations.place import Place

_SWEEP = Place("shoal.master.services.upkeep.resources")
_STORAGE = Place("shoal.runtime.storage")
_CLUSTER = Place("shoal.sql.repositories.upkeep.cluster")
_CONNECTION = Place("shoal.sql.driver.connection")
_ARCHIVED_LOGS = Place("shoal.master.services.upkeep.archived_logs")
_LOGS = Place("shoal.worker.logs.folders")
_SERVICE = Place("shoal.worker.logs.service")
_STATE = Place("shoal.client.local.data_folder")
_HOSTS = Place("shoal.api.web.hosts")
_ROLES = Place("shoal.client.local.roles")
_BACKGROUND = Place("shoal.client.local.background")
_FOLDER_IDENTITY = Place("shoal.runtime.folder_identity")
_HOME = Place("shoal.worker.home.home")
_IN_MASTER = "tests/integration/master/upkeep/test_copies.py"
_OF_NAMES = "tests/integration/sql/upkeep/test_cluster_names.py"
_IN_WORKER = "tests/integration/worker/logs/test_log_keeping.py"
_FOLDERS = "tests/integration/client/test_copied_folders.py"

MUTATIONS: tuple[Mutation, ...] = (
    Promise.NOTHING_LOST.broken_if(
        "a copy removes the original's resources",
        _SWEEP["_sweep"].never("match is not None and match['owner'] != cluster_folder(uid)"),
        f"{_IN_MASTER}::test_upkeep_of_a_copy_removes_rows_and_nothing_of_the_originals[sqlite]",
    ),
    Promise.NOTHING_LOST.broken_if(
        "objects of two clusters have one name",
        _STORAGE["name_for"].replace("cluster_folder(cluster)", "'0' * 32"),
        "tests/unit/runtime/test_storage.py::"
        "test_objects_of_earlier_versions_are_read_and_of_each_cluster_apart",
    ),
    Promise.NOTHING_LOST.broken_if(
        "rows that have gone do not count for the highest id",
        _CONNECTION["last_id"].replace("int(row.seq)", "0 * int(row.seq)"),
        f"{_OF_NAMES}::test_the_highest_id_counts_rows_that_have_gone[sqlite]",
    ),
    Promise.NOTHING_LOST.broken_if(
        "an archive that is ahead of its database is emptied",
        _ARCHIVED_LOGS["sweep"].never("instance > last"),
        "tests/integration/master/upkeep/test_archived_logs.py::"
        "test_logs_of_instances_that_there_are_not_any_more_go[sqlite]",
    ),
    Promise.NOTHING_LOST.broken_if(
        "a worker deletes logs of another cluster",
        _LOGS["belongs_to"].always(
            "(owner or _owner_of_unnamed(self.root, cluster)) == cluster_folder(cluster)"
        ),
        f"{_IN_WORKER}::test_logs_of_another_cluster_stay_by_age_and_for_space",
        f"{_IN_WORKER}::test_logs_of_earlier_versions_are_those_of_the_cluster_that_asks_first",
    ),
    Promise.NOTHING_LOST.broken_if(
        "a log of an earlier name of the cluster is shown for a new attempt",
        _SERVICE["_address"].always("log.may_be_unnamed or not log.clusters"),
        "tests/integration/worker/logs/test_logs.py::"
        "test_log_is_found_under_the_names_that_the_cluster_has_had",
    ),
    Promise.NOTHING_LOST.broken_if(
        "commands through a copied folder reach the original",
        _STATE["own_state"].replace(
            "raise CopiedFolder(data, state.path, state.api)", "return state"
        ),
        f"{_FOLDERS}::test_commands_through_a_copy_are_refused_with_both_folders[command0]",
        f"{_FOLDERS}::test_moved_folder_of_a_stopped_cluster_is_no_copy",
    ),
    Promise.NOTHING_LOST.broken_if(
        "an API serves requests for another data folder",
        _HOSTS["check_folder"].always("named is None or own is None or named.is_same(own)"),
        f"{_FOLDERS}::test_api_refuses_requests_for_another_folder_with_the_same_token",
    ),
    Promise.FENCED_OWNERSHIP.broken_if(
        "a role in a copied folder joins the original's ZooKeeper",
        _ROLES["load_cluster"].always(
            "state is not None and (state.is_of(cluster.data) or running_state(cluster.data))"
        ),
        f"{_FOLDERS}::test_down_and_single_roles_in_a_copy_leave_the_original_alone",
    ),
    Promise.NOTHING_LOST.broken_if(
        "an address counts that was there before the supervisor",
        _STATE["running_state"].replace(
            "holder is not None and state and (state.start == holder.start)", "holder and state"
        ),
        f"{_FOLDERS}::test_while_a_copy_starts_the_originals_address_does_not_count",
    ),
    Promise.NOTHING_LOST.broken_if(
        "a copied holder counts until the supervisor of the copy has written its own",
        _STATE["holder_of"].drop("fcntl.flock(gate, fcntl.LOCK_SH)"),
        "tests/unit/client/test_data_folder.py::"
        "test_a_copy_is_looked_at_when_its_supervisor_has_said_who_it_is",
    ),
    Promise.KILLED_MEANS_DEAD.broken_if(
        "down ends whatever process has the number",
        _BACKGROUND["stop_detached"].drop("not holds_lock(pid, data)"),
        f"{_FOLDERS}::test_supervisor_of_another_container_is_not_stopped",
    ),
    Promise.NOTHING_LOST.broken_if(
        "two volumes have one root",
        _FOLDER_IDENTITY["is_same"].always("self.filesystem == other.filesystem"),
        "tests/unit/runtime/test_folder_identity.py::test_inode_and_file_system_count",
    ),
    Promise.DURABLE_RESULTS.broken_if(
        "workers of two clusters share a spool",
        _HOME["_prepare"].never("not _lock(self._spool_fd)"),
        "tests/integration/worker/faults/test_restarts.py::"
        "test_workers_of_two_data_folders_share_no_spool",
    ),
    Promise.NOTHING_LOST.broken_if(
        "a new name of the cluster is not noted",
        _CLUSTER["uid"].drop("await self._note(found.uid)"),
        f"{_OF_NAMES}::test_a_new_name_begins_behind_the_ids_of_the_former_one[sqlite]",
    ),
)

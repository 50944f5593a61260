"""Resources: where their paths lead, which version counts, and that content is what was stored."""

from tests.mutations.mutation import Mutation, Promise
from tests.mutations.place import Place

_CACHE = Place("shoal.worker.home.resources")
_STORAGE = Place("shoal.runtime.storage")
_SQL = Place("shoal.sql.repositories.definitions.resources")
_FETCHING = Place("shoal.worker.home.download")
_HELPERS = Place("shoal.worker.processes.helpers")
_MASTER = Place("shoal.master.dispatch.resources")
_SWEEP = Place("shoal.master.services.upkeep.resources")
_RPC = Place("shoal.master.dispatch.rpc")
_IN_WORKER = "tests/integration/worker/agent/test_resources.py"
_OF_STORAGE = "tests/unit/runtime/test_storage.py"
_IN_SQL = "tests/integration/sql/definitions/test_resources.py"
_IN_MASTER = "tests/integration/master/dispatch/test_resources.py"
_IN_API = "tests/integration/api/project/test_resources.py"

MUTATIONS: tuple[Mutation, ...] = (
    Promise.TEXT_STAYS_TEXT.broken_if(
        "a worker takes any path out of a payload",
        _CACHE["stage"].never("path_problem(one.path) or not _DIGEST.fullmatch(one.sha256)"),
        f"{_IN_WORKER}::test_path_of_a_payload_that_leads_outside_is_refused",
    ),
    Promise.TEXT_STAYS_TEXT.broken_if(
        "the name of an object leads out of the storage",
        _STORAGE["_at"].never("not self.purpose.names.fullmatch(name)"),
        f"{_OF_STORAGE}::test_name_that_leads_elsewhere_is_none",
    ),
    Promise.TEXT_STAYS_TEXT.broken_if(
        "a file lies in the place of a folder",
        _SQL["complete"].drop("await self._require_free(upload)"),
        f"{_IN_SQL}::test_path_is_a_file_or_a_folder",
    ),
    Promise.NOTHING_LOST.broken_if(
        "what was fetched is not checked",
        _FETCHING["_try_to_fetch"].never("(digest.hexdigest(), size) != (file.sha256, file.size)"),
        f"{_IN_WORKER}::test_content_is_checked_before_it_has_its_name",
    ),
    Promise.NOTHING_LOST.broken_if(
        "a file that has lost its bytes in a crash is used",
        _CACHE["_missing"].replace("path.stat().st_size != file.size", "not path.stat()"),
        f"{_IN_WORKER}::test_file_of_the_cache_that_has_lost_bytes_is_fetched_again",
    ),
    Promise.NOTHING_LOST.broken_if(
        "an attempt works on the file of the cache",
        _CACHE["_copy"].replace("shutil.copyfile", "os.link"),
        f"{_IN_WORKER}::test_copy_is_the_attempts_own_and_the_next_one_needs_no_storage",
    ),
    Promise.PROGRESS.broken_if(
        "files that are in use make room",
        _CACHE["_make_room"].drop("name not in in_use"),
        f"{_IN_WORKER}::test_files_in_use_make_no_room",
    ),
    Promise.PROGRESS.broken_if(
        "each task fetches for itself",
        _CACHE["_fetch"].replace(
            "[file for file in missing if file.sha256 not in self._fetching]", "missing"
        ),
        f"{_IN_WORKER}::test_tasks_at_once_fetch_a_file_once_also_if_the_first_is_killed",
    ),
    Promise.PROGRESS.broken_if(
        "a kill of the first one ends the fetching for all",
        _CACHE["_fetch"].replace("asyncio.shield(task)", "task"),
        f"{_IN_WORKER}::test_tasks_at_once_fetch_a_file_once_also_if_the_first_is_killed",
    ),
    Promise.PROGRESS.broken_if(
        "fetching that ends with its worker is a failure",
        _HELPERS["run"].never("record.cause in INTERRUPTIONS"),
        f"{_IN_WORKER}::test_fetching_that_is_interrupted_is_no_result_of_the_attempt",
    ),
    Promise.PROGRESS.broken_if(
        "a machine without room for a fetch fails the task",
        _CACHE["_run"].never("ended.record.exit_code == STARVED"),
        f"{_IN_WORKER}::"
        "test_task_goes_back_where_the_machine_has_no_room_to_stage_its_files[fetching]",
    ),
    Promise.RUNS_STAY.broken_if(
        "a run gets what was put there after its beginning",
        _SQL["_counts_at"].drop("resource.c.created_at <= at"),
        f"{_IN_SQL}::test_what_counts_is_what_was_there_at_that_moment",
        f"{_IN_MASTER}::test_task_gets_what_was_there_when_its_run_began",
    ),
    Promise.RUNS_STAY.broken_if(
        "a version counts when it has been replaced",
        _SQL["_counts_at"].always("or_(...)"),
        f"{_IN_SQL}::test_what_counts_is_what_was_there_at_that_moment",
    ),
    Promise.RUNS_STAY.broken_if(
        "a retry gets what was put there meanwhile",
        _MASTER["resources_of"].replace(
            "await uow.resources.last_restart(run.id) or run.created_at",
            "datetime.now(run.created_at.tzinfo)",
        ),
        f"{_IN_MASTER}::test_recovered_run_gets_the_repaired_file_and_a_retry_does_not",
    ),
    Promise.PROGRESS.broken_if(
        "a recovered run gets the broken file again",
        _MASTER["resources_of"].drop("await uow.resources.last_restart(run.id)"),
        f"{_IN_MASTER}::test_recovered_run_gets_the_repaired_file_and_a_retry_does_not",
    ),
    Promise.NOTHING_LOST.broken_if(
        "a change of another version than expected is taken",
        _SQL["complete"].never("expected is not None and expected != found"),
        f"{_IN_SQL}::test_change_of_another_version_than_expected_is_refused",
        f"{_IN_API}::test_change_of_a_version_that_is_not_the_newest_any_more_is_refused",
    ),
    Promise.NOTHING_LOST.broken_if(
        "changes of a project's files do not wait for one another",
        _SQL["complete"].replace("self._projects.hold", "self._projects.ensure"),
        f"{_IN_SQL}::test_changes_at_once_make_one_version_each",
    ),
    Promise.NOTHING_LOST.broken_if(
        "an upload whose object was swept becomes a version",
        _SQL["complete"].never("changed.rowcount != 1"),
        f"{_IN_SQL}::test_uploads_that_never_end_may_go_after_a_day",
    ),
    Promise.ROOM.broken_if(
        "a project takes any number of bytes",
        _SQL["complete"].never("taken > most"),
        f"{_IN_SQL}::test_project_has_room_for_so_many_bytes",
    ),
    Promise.NOTHING_LOST.broken_if(
        "a version goes that an open run began with",
        _SQL["unneeded"].drop("~may_be_used"),
        f"{_IN_SQL}::test_versions_that_an_open_run_can_use_stay_until_it_ends[sqlite]",
    ),
    Promise.ROOM.broken_if(
        "a forgotten run keeps every later version",
        _SQL["unneeded"].drop("resource.c.created_at <= uses.c.at"),
        f"{_IN_SQL}::test_versions_that_an_open_run_can_use_stay_until_it_ends[sqlite]",
    ),
    Promise.NOTHING_LOST.broken_if(
        "a version goes that an open run was restarted with",
        _SQL["_unfinished"].replace("func.coalesce(restart, run.created_at)", "run.created_at"),
        f"{_IN_SQL}::test_restarted_run_uses_the_versions_of_its_restart[sqlite]",
    ),
    Promise.NOTHING_LOST.broken_if(
        "a shared version goes that an open run of another project uses",
        _SQL["_used_by"].replace("union(own, shared)", "own"),
        f"{_IN_SQL}::test_versions_that_an_open_run_of_another_project_can_use_stay",
    ),
    Promise.NOTHING_LOST.broken_if(
        "a version goes that an open run has made",
        _SQL["unneeded"].drop("~made_since"),
        f"{_IN_SQL}::test_versions_that_an_open_run_has_made_stay_until_it_ends[sqlite]",
    ),
    Promise.NOTHING_LOST.broken_if(
        "the newest versions of a file go by age",
        _SQL["unneeded"].drop("~kept"),
        f"{_IN_SQL}::test_versions_go_by_age_but_the_newest_of_a_file_that_there_is",
    ),
    Promise.NOTHING_LOST.broken_if(
        "a row goes while its object stays",
        _SWEEP["_sweep"].drop("await asyncio.to_thread(...)"),
        f"{_IN_MASTER}::test_what_is_not_needed_any_more_is_swept_with_its_objects",
    ),
    Promise.PROGRESS.broken_if(
        "one object that cannot be keeps everything behind it",
        _SWEEP["_sweep"].replace("ObjectMissing", "ZeroDivisionError"),
        f"{_IN_MASTER}::test_what_is_not_needed_any_more_is_swept_with_its_objects",
    ),
    Promise.PROGRESS.broken_if(
        "a file that was not there is asked for again and again",
        _RPC["_grant"].never("isinstance(error, UnusableResource | BadPublication)"),
        f"{_IN_MASTER}::test_task_whose_resource_is_not_there_fails_with_the_reason",
    ),
)

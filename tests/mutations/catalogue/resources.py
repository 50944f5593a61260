"""Resources: where their paths lead, which version counts, and that content is what was stored."""

from tests.mutations.mutation import Mutation, Promise, mutation

_SQL = "sql/shoal/sql/repositories/definitions/resources.py"
_STORAGE = "runtime/shoal/runtime/storage.py"
_MASTER = "master/shoal/master/dispatch/resources.py"
_SWEEP = "master/shoal/master/services/upkeep/resources.py"
_FETCHING = "worker/shoal/worker/home/fetching.py"
_CACHE = "worker/shoal/worker/home/resources.py"
_IN_SQL = "tests/integration/sql/test_resources.py"
_IN_API = "tests/integration/api/test_resources.py"
_IN_MASTER = "tests/integration/master/test_resources.py"
_IN_WORKER = "tests/integration/worker/test_agent_resources.py"
_OF_STORAGE = "tests/unit/runtime/test_storage.py"

MUTATIONS: tuple[Mutation, ...] = (
    mutation(
        "a worker takes any path out of a payload",
        Promise.TEXT_STAYS_TEXT,
        _CACHE,
        ("if path_problem(one.path) or not _DIGEST.fullmatch(one.sha256):", "if False:"),
        (f"{_IN_WORKER}::test_path_of_a_payload_that_leads_outside_is_refused",),
    ),
    mutation(
        "the name of an object leads out of the storage",
        Promise.TEXT_STAYS_TEXT,
        _STORAGE,
        ("if not self.purpose.names.fullmatch(name):", "if False:"),
        (f"{_OF_STORAGE}::test_name_that_leads_elsewhere_is_none",),
    ),
    mutation(
        "a file lies in the place of a folder",
        Promise.TEXT_STAYS_TEXT,
        _SQL,
        ("        await self._require_free(upload)\n", ""),
        (f"{_IN_SQL}::test_path_is_a_file_or_a_folder",),
    ),
    mutation(
        "what was fetched is not checked",
        Promise.NOTHING_LOST,
        _FETCHING,
        ("if (digest.hexdigest(), size) != (file.sha256, file.size):", "if False:"),
        (f"{_IN_WORKER}::test_content_is_checked_before_it_has_its_name",),
    ),
    mutation(
        "a file that has lost its bytes in a crash is used",
        Promise.NOTHING_LOST,
        _CACHE,
        ("if path.stat().st_size != file.size:", "if not path.stat():"),
        (f"{_IN_WORKER}::test_file_of_the_cache_that_has_lost_bytes_is_fetched_again",),
    ),
    mutation(
        "an attempt works on the file of the cache",
        Promise.NOTHING_LOST,
        _CACHE,
        (
            "shutil.copyfile(self._root / one.sha256, target)",
            "os.link(self._root / one.sha256, target)",
        ),
        (f"{_IN_WORKER}::test_copy_is_the_attempts_own_and_the_next_one_needs_no_storage",),
    ),
    mutation(
        "files that are in use make room",
        Promise.PROGRESS,
        _CACHE,
        ("if _DIGEST.fullmatch(name) and name not in in_use:", "if _DIGEST.fullmatch(name):"),
        (f"{_IN_WORKER}::test_files_in_use_make_no_room",),
    ),
    mutation(
        "each task fetches for itself",
        Promise.PROGRESS,
        _CACHE,
        ("new = [file for file in missing if file.sha256 not in self._fetching]", "new = missing"),
        (f"{_IN_WORKER}::test_tasks_at_once_fetch_a_file_once_also_if_the_first_is_killed",),
    ),
    mutation(
        "a kill of the first one ends the fetching for all",
        Promise.PROGRESS,
        _CACHE,
        ("await asyncio.shield(task)", "await task"),
        (f"{_IN_WORKER}::test_tasks_at_once_fetch_a_file_once_also_if_the_first_is_killed",),
    ),
    mutation(
        "fetching that ends with its worker is a failure",
        Promise.PROGRESS,
        "worker/shoal/worker/home/helpers.py",
        ("if record.cause in INTERRUPTIONS:", "if False:"),
        (f"{_IN_WORKER}::test_fetching_that_is_interrupted_is_no_result_of_the_attempt",),
    ),
    mutation(
        "a machine without room for a fetch fails the task",
        Promise.PROGRESS,
        _CACHE,
        ("if ended.record.exit_code == STARVED:", "if False:"),
        (
            f"{_IN_WORKER}::"
            "test_task_goes_back_where_the_machine_has_no_room_to_stage_its_files[fetching]",
        ),
    ),
    mutation(
        "a run gets what was put there after its beginning",
        Promise.RUNS_STAY,
        _SQL,
        ("        resource.c.created_at <= at,\n        or_(", "        or_("),
        (
            f"{_IN_SQL}::test_what_counts_is_what_was_there_at_that_moment",
            f"{_IN_MASTER}::test_task_gets_what_was_there_when_its_run_began",
        ),
    ),
    mutation(
        "a version counts when it has been replaced",
        Promise.RUNS_STAY,
        _SQL,
        ("or_(resource.c.ended_at.is_(None), resource.c.ended_at > at)", "True"),
        (f"{_IN_SQL}::test_what_counts_is_what_was_there_at_that_moment",),
    ),
    mutation(
        "a retry gets what was put there meanwhile",
        Promise.RUNS_STAY,
        _MASTER,
        (
            "at = await uow.resources.last_restart(run.id) or run.created_at",
            "at = datetime.now(run.created_at.tzinfo)",
        ),
        (f"{_IN_MASTER}::test_recovered_run_gets_the_repaired_file_and_a_retry_does_not",),
    ),
    mutation(
        "a recovered run gets the broken file again",
        Promise.PROGRESS,
        _MASTER,
        (
            "at = await uow.resources.last_restart(run.id) or run.created_at",
            "at = run.created_at",
        ),
        (f"{_IN_MASTER}::test_recovered_run_gets_the_repaired_file_and_a_retry_does_not",),
    ),
    mutation(
        "a change of another version than expected is taken",
        Promise.NOTHING_LOST,
        _SQL,
        ("if expected is not None and expected != found:", "if False:"),
        (
            f"{_IN_SQL}::test_change_of_another_version_than_expected_is_refused",
            f"{_IN_API}::test_change_of_a_version_that_is_not_the_newest_any_more_is_refused",
        ),
    ),
    mutation(
        "changes of a project's files do not wait for one another",
        Promise.NOTHING_LOST,
        _SQL,
        (
            "owner = await self._projects.hold(upload.project, at)",
            "owner = await self._projects.ensure(upload.project, at)",
        ),
        (f"{_IN_SQL}::test_changes_at_once_make_one_version_each",),
    ),
    mutation(
        "an upload whose object was swept becomes a version",
        Promise.NOTHING_LOST,
        _SQL,
        (
            "        if changed.rowcount != 1:\n            raise UploadExpired",
            "        if False:\n            raise UploadExpired",
        ),
        (f"{_IN_SQL}::test_uploads_that_never_end_may_go_after_a_day",),
    ),
    mutation(
        "a project takes any number of bytes",
        Promise.ROOM,
        _SQL,
        ("if taken > most:", "if False:"),
        (f"{_IN_SQL}::test_project_has_room_for_so_many_bytes",),
    ),
    mutation(
        "the newest versions of a file go by age",
        Promise.NOTHING_LOST,
        _SQL,
        ("and_(resource.c.ended_at < ended, ~kept)", "resource.c.ended_at < ended"),
        (f"{_IN_SQL}::test_versions_go_by_age_but_the_newest_of_a_file_that_there_is",),
    ),
    mutation(
        "a row goes while its object stays",
        Promise.NOTHING_LOST,
        _SWEEP,
        ("await asyncio.to_thread(self._storage.remove, one.object)", "pass"),
        (f"{_IN_MASTER}::test_what_is_not_needed_any_more_is_swept_with_its_objects",),
    ),
    mutation(
        "one object that cannot be keeps everything behind it",
        Promise.PROGRESS,
        _SWEEP,
        ("except ObjectMissing:", "except ZeroDivisionError:"),
        (f"{_IN_MASTER}::test_what_is_not_needed_any_more_is_swept_with_its_objects",),
    ),
    mutation(
        "a file that was not there is asked for again and again",
        Promise.PROGRESS,
        "master/shoal/master/dispatch/rpc.py",
        ("permanent = isinstance(error, UnusableResource | BadPublication)", "permanent = False"),
        (f"{_IN_MASTER}::test_task_whose_resource_is_not_there_fails_with_the_reason",),
    ),
)

"""The archive of logs: whole logs, of finished attempts, of instances that there are."""

from tests.mutations.mutation import Mutation, Promise
from tests.mutations.place import Place

_ARCHIVED_LOGS = Place("shoal.master.services.upkeep.archived_logs")
_LOG_ARCHIVE = Place("shoal.runtime.log_archive")
_STORAGE = Place("shoal.runtime.storage")
_KEEPING = Place("shoal.worker.logs.retention")
_UPLOADING = Place("shoal.worker.logs.upload")
_ARCHIVING = Place("shoal.worker.logs.archive")
_ASSEMBLY = Place("shoal.worker.assembly")
_LOGS = Place("shoal.api.operations.logs")
_IN_MASTER = "tests/integration/master/upkeep/test_archived_logs.py"
_OF_ARCHIVE = "tests/unit/runtime/test_log_archive.py"
_IN_WORKER = "tests/integration/worker/logs/test_archive.py"
_IN_API = "tests/integration/api/runs/test_logs.py"

MUTATIONS: tuple[Mutation, ...] = (
    Promise.NOTHING_LOST.broken_if(
        "archived logs of instances that there are go",
        _ARCHIVED_LOGS["sweep"].drop("instance not in known"),
        f"{_IN_MASTER}::test_logs_of_instances_that_there_are_not_any_more_go",
    ),
    Promise.NOTHING_LOST.broken_if(
        "clusters that share a storage have one archive",
        _LOG_ARCHIVE["__init__"].replace("cluster", "''"),
        f"{_OF_ARCHIVE}::TestLogArchive::test_instances_are_listed_by_thousands_and_removed_whole",
    ),
    Promise.NOTHING_LOST.broken_if(
        "half a copy takes the place of a log",
        _STORAGE["put"].replace(
            "path if _is_s3(files) else f'{path}.{uuid.uuid4().hex}.part'", "path"
        ),
        f"{_OF_ARCHIVE}::TestLogArchive::test_copy_that_breaks_off_is_no_log",
    ),
    Promise.NOTHING_LOST.broken_if(
        "logs go by age before they are in the archive",
        _KEEPING["_remove_archived"].always("not archiver.is_waiting(one.folder)"),
        "tests/integration/worker/logs/test_log_keeping.py::"
        "test_what_is_still_to_be_copied_to_the_archive_does_not_go_by_age",
    ),
    Promise.NOTHING_LOST.broken_if(
        "a log that has grown stays as it was in the archive",
        _UPLOADING["unarchived"].replace("marks.get(task) != status.st_size", "task not in marks"),
        f"{_IN_WORKER}::test_only_what_has_changed_is_copied_again",
    ),
    Promise.PROGRESS.broken_if(
        "logs of live attempts are copied",
        _UPLOADING["main"].replace("unarchived(folder) - errand.live", "unarchived(folder)"),
        f"{_IN_WORKER}::test_logs_of_live_attempts_are_left_out",
    ),
    Promise.PROGRESS.broken_if(
        "logs of purged instances are copied",
        _ARCHIVING["_upload"].replace(
            "if not known:\n    return",
            "known = [(f.workflow, f.workflow_instance_id) for f in some]",
        ),
        f"{_IN_WORKER}::test_logs_of_a_purged_instance_are_not_copied",
    ),
    Promise.NOTHING_LOST.broken_if(
        "a worker leaves without its last logs",
        _ASSEMBLY["run"].replace("(log_keeper.finish, LAST_LOGS_S)", "(log_keeper.finish, 0.0)"),
        f"{_IN_WORKER}::test_worker_that_leaves_copies_what_is_left",
    ),
    Promise.NOTHING_LOST.broken_if(
        "a search for logs that failed is repeated an hour later",
        _ARCHIVING["run"].replace(
            "await self._search()\ndue_s = time.monotonic() + SEARCH_EVERY_S",
            "due_s = time.monotonic() + SEARCH_EVERY_S\nawait self._search()",
        ),
        f"{_IN_WORKER}::test_search_that_failed_is_repeated_soon",
    ),
    Promise.NOTHING_LOST.broken_if(
        "logs of an earlier life are not looked for",
        _ARCHIVING["run"].drop("await self._search()"),
        f"{_IN_WORKER}::test_what_a_killed_worker_has_left_is_copied_by_its_next_life",
    ),
    Promise.GUARDED_STATES.broken_if(
        "the log of a task that runs comes from the archive",
        _LOGS["_archived"].drop("task.state not in FINISHED_TASK"),
        f"{_IN_API}::test_log_of_a_task_that_runs_does_not_come_from_the_archive",
    ),
)

"""The archive of logs: whole logs, of finished attempts, of instances that there are."""

from tests.mutations.mutation import Mutation, Promise, mutation

_UPLOADING = "worker/shoal/worker/logs/uploading.py"
_IN_WORKER = "tests/integration/worker/test_agent_archive.py"
_IN_MASTER = "tests/integration/master/test_archived_logs.py"
_IN_API = "tests/integration/api/test_logs.py"
_OF_ARCHIVE = "tests/unit/runtime/test_log_archive.py"

MUTATIONS: tuple[Mutation, ...] = (
    mutation(
        "archived logs of instances that there are go",
        Promise.NOTHING_LOST,
        "master/shoal/master/services/upkeep/archived_logs.py",
        ("if instance not in known:", "if True:"),
        (f"{_IN_MASTER}::test_logs_of_instances_that_there_are_not_any_more_go",),
    ),
    mutation(
        "clusters that share a storage have one archive",
        Promise.NOTHING_LOST,
        "runtime/shoal/runtime/log_archive.py",
        ("cluster_folder(cluster)", 'cluster_folder("")'),
        (f"{_OF_ARCHIVE}::test_instances_are_listed_by_thousands_and_removed_whole",),
    ),
    mutation(
        "half a copy takes the place of a log",
        Promise.NOTHING_LOST,
        "runtime/shoal/runtime/storage.py",
        ('part = path if _is_s3(files) else f"{path}.{uuid.uuid4().hex}.part"', "part = path"),
        (f"{_OF_ARCHIVE}::test_copy_that_breaks_off_is_no_log",),
    ),
    mutation(
        "logs go by age before they are in the archive",
        Promise.NOTHING_LOST,
        "worker/shoal/worker/logs/keeping.py",
        ("or not archiver.is_waiting(one.folder)", "or True"),
        (
            "tests/integration/worker/test_log_keeping.py::"
            "test_what_is_still_to_be_copied_to_the_archive_does_not_go_by_age",
        ),
    ),
    mutation(
        "a log that has grown stays as it was in the archive",
        Promise.NOTHING_LOST,
        _UPLOADING,
        ("marks.get(task) != status.st_size", "task not in marks"),
        (f"{_IN_WORKER}::test_only_what_has_changed_is_copied_again",),
    ),
    mutation(
        "logs of live attempts are copied",
        Promise.PROGRESS,
        _UPLOADING,
        ("unarchived(folder) - errand.live", "unarchived(folder)"),
        (f"{_IN_WORKER}::test_logs_of_live_attempts_are_left_out",),
    ),
    mutation(
        "logs of purged instances are copied",
        Promise.PROGRESS,
        "worker/shoal/worker/logs/archiving.py",
        (
            "        if not known:\n            return\n",
            "        known = [(f.workflow, f.workflow_instance_id) for f in some]\n",
        ),
        (f"{_IN_WORKER}::test_logs_of_a_purged_instance_are_not_copied",),
    ),
    mutation(
        "a worker leaves without its last logs",
        Promise.NOTHING_LOST,
        "worker/shoal/worker/agent.py",
        (
            "await _first(self._log_keeper.finish(), at_once.wait(), timeout_s=LAST_LOGS_S)",
            "pass",
        ),
        (f"{_IN_WORKER}::test_worker_that_leaves_copies_what_is_left",),
    ),
    mutation(
        "a search for logs that failed is repeated an hour later",
        Promise.NOTHING_LOST,
        "worker/shoal/worker/logs/archiving.py",
        (
            "                    await self._search()\n"
            "                    due_s = time.monotonic() + SEARCH_EVERY_S\n",
            "                    due_s = time.monotonic() + SEARCH_EVERY_S\n"
            "                    await self._search()\n",
        ),
        (f"{_IN_WORKER}::test_search_that_failed_is_repeated_soon",),
    ),
    mutation(
        "logs of an earlier life are not looked for",
        Promise.NOTHING_LOST,
        "worker/shoal/worker/logs/archiving.py",
        ("                    await self._search()\n", ""),
        (f"{_IN_WORKER}::test_what_a_killed_worker_has_left_is_copied_by_its_next_life",),
    ),
    mutation(
        "the log of a task that runs comes from the archive",
        Promise.GUARDED_STATES,
        "api/shoal/api/operations/logs.py",
        (
            "if self._archive is None or task.state not in FINISHED_TASK:",
            "if self._archive is None:",
        ),
        (f"{_IN_API}::test_log_of_a_task_that_runs_does_not_come_from_the_archive",),
    ),
)

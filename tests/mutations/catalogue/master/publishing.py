"""Files that attempts hand over: what they are, and that they are there with the success alone."""

from tests.mutations.mutation import Mutation, Promise
from tests.mutations.place import Place

_STORING = Place("shoal.worker.home.upload")
_PUBLISHING = Place("shoal.worker.results.publications")
_MAIN = Place("shoal.worker.main")
_MASTER = Place("shoal.master.engine.publications")
_SQL = Place("shoal.sql.repositories.definitions.resources")
_RESOURCES = Place("shoal.master.dispatch.resources")
_ENGINE = Place("shoal.master.engine.engine")
_OF_FILES = "tests/unit/worker/home/test_storing.py"
_REFUSED = f"{_OF_FILES}::test_what_is_no_file_of_its_own_is_refused_before_anything_is_written"
_IN_WORKER = "tests/integration/worker/agent/test_publishing.py"
_IN_MASTER = "tests/integration/master/dispatch/test_publications.py"
_IN_SQL = "tests/integration/sql/definitions/test_resources.py"

MUTATIONS: tuple[Mutation, ...] = (
    Promise.TEXT_STAYS_TEXT.broken_if(
        "a link of a task's leads to files of others",
        _STORING.replace("os.O_RDONLY | os.O_NOFOLLOW", "os.O_RDONLY"),
        _REFUSED,
    ),
    Promise.TEXT_STAYS_TEXT.broken_if(
        "a link in the place of a folder leads to files of others",
        _STORING.replace(
            "os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW", "os.O_RDONLY | os.O_DIRECTORY"
        ),
        _REFUSED,
    ),
    Promise.TEXT_STAYS_TEXT.broken_if(
        "a second name of another's file is handed over",
        _STORING["_problem"].never("found.st_nlink != 1"),
        _REFUSED,
    ),
    Promise.ROOM.broken_if(
        "a file of any size is handed over",
        _STORING["_try_to_store"].never("size > errand.largest"),
        f"{_OF_FILES}::test_file_that_grows_while_it_is_read_is_not_stored_beyond_the_limit",
    ),
    Promise.TEXT_STAYS_TEXT.broken_if(
        "a path of a payload leads out of the attempt's folder",
        _PUBLISHING["_store"].replace("path_problem(one.file) or path_problem(one.path)", "None"),
        f"{_IN_WORKER}::test_file_that_cannot_be_used_fails_the_attempt_and_leaves_nothing",
    ),
    Promise.DURABLE_RESULTS.broken_if(
        "a success is reported whose files were lost with the worker",
        _MAIN["report_leftovers"].drop("lacks_files(record)"),
        f"{_IN_WORKER}::"
        "test_worker_that_dies_reports_no_success_unless_the_files_are_there"
        "[publish.before_upload-False]",
    ),
    Promise.NOTHING_LOST.broken_if(
        "a master takes a success without its files",
        _MASTER["store"].replace(
            "if written.keys() != {upload.path for upload in uploads}:\n    ...",
            "uploads = [one for one in uploads if one.path in written]\nif False:\n    ...",
        ),
        f"{_IN_MASTER}::test_report_without_the_files_is_a_failure",
    ),
    Promise.ROOM.broken_if(
        "a worker says itself how large a resource may be",
        _MASTER["store"].never("one.size > self._limits.file"),
        f"{_IN_MASTER}::test_report_without_the_files_is_a_failure",
    ),
    Promise.GUARDED_STATES.broken_if(
        "an attempt completes the uploads of another run",
        _SQL["reserved"].drop("resource.c.instance_id == instance_id"),
        f"{_IN_SQL}::test_uploads_of_a_run_stay_until_it_has_been_over_for_a_day",
    ),
    Promise.NOTHING_LOST.broken_if(
        "uploads of a run that goes on are swept away",
        _SQL["unneeded"].drop("~may_be_under_way"),
        f"{_IN_SQL}::test_uploads_of_a_run_stay_until_it_has_been_over_for_a_day",
    ),
    Promise.PROGRESS.broken_if(
        "tasks do not get what their own run has made",
        _RESOURCES["_made"].always("not run.plan.publishes"),
        f"{_IN_MASTER}::test_tasks_behind_it_get_what_their_own_run_has_made_and_other_runs_do_not",
    ),
    Promise.PROGRESS.broken_if(
        "a refused file keeps the success of its attempt from being decided",
        _ENGINE["_process"].drop("refused.become_a_failure()"),
        f"{_IN_MASTER}::test_project_without_room_fails_the_task",
    ),
)

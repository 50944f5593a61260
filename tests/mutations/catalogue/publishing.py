"""Files that attempts hand over: what they are, and that they are there with the success alone."""

from tests.mutations.mutation import Mutation, Promise, mutation

_STORING = "worker/shoal/worker/home/storing.py"
_SQL = "sql/shoal/sql/repositories/definitions/resources.py"
_MASTER = "master/shoal/master/dispatch/publications.py"
_OF_FILES = "tests/unit/worker/test_storing.py"
_IN_MASTER = "tests/integration/master/test_publications.py"
_IN_WORKER = "tests/integration/worker/test_agent_publishing.py"
_IN_SQL = "tests/integration/sql/test_resources.py"
_REFUSED = f"{_OF_FILES}::test_what_is_no_file_of_its_own_is_refused_before_anything_is_written"

MUTATIONS: tuple[Mutation, ...] = (
    mutation(
        "a link of a task's leads to files of others",
        Promise.TEXT_STAYS_TEXT,
        _STORING,
        ("_FILE = os.O_RDONLY | os.O_NOFOLLOW | ", "_FILE = os.O_RDONLY | "),
        (_REFUSED,),
    ),
    mutation(
        "a link in the place of a folder leads to files of others",
        Promise.TEXT_STAYS_TEXT,
        _STORING,
        (
            "_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | ",
            "_FOLDER = os.O_RDONLY | os.O_DIRECTORY | ",
        ),
        (_REFUSED,),
    ),
    mutation(
        "a second name of another's file is handed over",
        Promise.TEXT_STAYS_TEXT,
        _STORING,
        ("if found.st_nlink != 1:", "if False:"),
        (_REFUSED,),
    ),
    mutation(
        "a file of any size is handed over",
        Promise.ROOM,
        _STORING,
        ("            if size > errand.largest:", "            if False:"),
        (f"{_OF_FILES}::test_file_that_grows_while_it_is_read_is_not_stored_beyond_the_limit",),
    ),
    mutation(
        "a path of a payload leads out of the attempt's folder",
        Promise.TEXT_STAYS_TEXT,
        "worker/shoal/worker/results/publishing.py",
        ("if problem := path_problem(one.file) or path_problem(one.path):", "if problem := None:"),
        (f"{_IN_WORKER}::test_file_that_cannot_be_used_fails_the_attempt_and_leaves_nothing",),
    ),
    mutation(
        "a success is reported whose files were lost with the worker",
        Promise.DURABLE_RESULTS,
        "worker/shoal/worker/main.py",
        ("if was_interrupted(record) or lacks_files(record):", "if was_interrupted(record):"),
        (
            f"{_IN_WORKER}::test_worker_that_dies_reports_no_success_unless_the_files_are_there"
            "[publish.before_upload-False]",
        ),
    ),
    mutation(
        "a master takes a success without its files",
        Promise.NOTHING_LOST,
        _MASTER,
        (
            "        if written.keys() != {upload.path for upload in uploads}:\n",
            "        uploads = [one for one in uploads if one.path in written]\n"
            "        if False:\n",
        ),
        (f"{_IN_MASTER}::test_report_without_the_files_is_a_failure",),
    ),
    mutation(
        "a worker says itself how large a resource may be",
        Promise.ROOM,
        _MASTER,
        ("if one.size > self._limits.file:", "if False:"),
        (f"{_IN_MASTER}::test_report_without_the_files_is_a_failure",),
    ),
    mutation(
        "an attempt completes the uploads of another run",
        Promise.GUARDED_STATES,
        _SQL,
        (
            "            resource.c.instance_id == instance_id,\n            IS_UPLOAD,",
            "            IS_UPLOAD,",
        ),
        (f"{_IN_SQL}::test_uploads_of_a_run_stay_until_it_has_been_over_for_a_day",),
    ),
    mutation(
        "uploads of a run that goes on are swept away",
        Promise.NOTHING_LOST,
        _SQL,
        ("resource.c.started_at < uploads, ~may_be_under_way)", "resource.c.started_at < uploads)"),
        (f"{_IN_SQL}::test_uploads_of_a_run_stay_until_it_has_been_over_for_a_day",),
    ),
    mutation(
        "tasks do not get what their own run has made",
        Promise.PROGRESS,
        "master/shoal/master/dispatch/resources.py",
        ("if not run.plan.publishes:", "if True:"),
        (
            f"{_IN_MASTER}::"
            "test_tasks_behind_it_get_what_their_own_run_has_made_and_other_runs_do_not",
        ),
    ),
    mutation(
        "a refused file keeps the success of its attempt from being decided",
        Promise.PROGRESS,
        "master/shoal/master/engine/engine.py",
        ("            refused.become_a_failure()\n", ""),
        (f"{_IN_MASTER}::test_project_without_room_fails_the_task",),
    ),
)

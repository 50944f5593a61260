"""A worker's Spark Connect servers: whose they are, and what follows when one dies."""

from tests.mutations.mutation import Mutation, Promise
from tests.mutations.place import Place

_SPARK_SERVERS = Place("shoal.worker.spark.servers")
_ACCESS = Place("shoal.worker.spark.access")
_JOBS = Place("shoal.worker.spark.jobs")
_TESTS = "tests/integration/worker/spark"
_TEST_SHARING = f"{_TESTS}/test_sharing.py"
_TEST_DYING = f"{_TESTS}/test_dying.py"
_TEST_LEFTOVERS = f"{_TESTS}/test_leftovers.py"

MUTATIONS: tuple[Mutation, ...] = (
    Promise.SECRETS_STAY.broken_if(
        "all projects of a worker share one Spark server",
        _SPARK_SERVERS["use"].replace("project", "'one for all'"),
        f"{_TEST_SHARING}::"
        "test_tasks_of_a_project_share_a_server_and_other_projects_have_their_own",
    ),
    Promise.SECRETS_STAY.broken_if(
        "a server's token is shown in the log",
        _ACCESS["connect"].drop("*forms(...)"),
        f"{_TEST_SHARING}::"
        "test_tasks_of_a_project_share_a_server_and_other_projects_have_their_own",
    ),
    Promise.PROGRESS.broken_if(
        "bystanders fail with a server that dies",
        _SPARK_SERVERS["_keep"].replace("len(kept.users) > 1", "len(kept.users) > 99"),
        f"{_TEST_DYING}::test_server_that_dies_under_several_tasks_interrupts_them_all",
    ),
    Promise.PROGRESS.broken_if(
        "a server that answers nobody is kept",
        _SPARK_SERVERS["_until_end"].replace("MOST_SILENT", "1_000_000"),
        f"{_TEST_DYING}::test_server_that_answers_nobody_is_ended",
    ),
    Promise.PROGRESS.broken_if(
        "an unused server keeps its place",
        _SPARK_SERVERS["_of"].drop("min(...).leave.set()"),
        f"{_TEST_SHARING}::test_unused_server_is_stopped_and_its_place_goes_to_another_project",
    ),
    Promise.PROGRESS.broken_if(
        "jobs of users that have left go on",
        _SPARK_SERVERS["end_jobs_of_others"].drop("session in self.left"),
        f"{_TEST_LEFTOVERS}::test_job_of_one_that_has_left_is_ended_beside_others_that_go_on",
    ),
    Promise.PROGRESS.broken_if(
        "an unused server goes on with what programs have left",
        _SPARK_SERVERS["end_jobs_of_others"].drop("not self.users"),
        f"{_TEST_LEFTOVERS}::test_unused_server_ends_what_sessions_of_a_program_have_left",
    ),
    Promise.NOTHING_LOST.broken_if(
        "the jobs of others end with those of one that has left",
        _SPARK_SERVERS["end_jobs_of_others"].always("not self.users or session in self.left"),
        f"{_TEST_LEFTOVERS}::test_job_of_one_that_has_left_is_ended_beside_others_that_go_on",
    ),
    Promise.SECRETS_STAY.broken_if(
        "the pages of a server answer everybody",
        _JOBS["conf"].drop("'spark.ui.filters': ..."),
        f"{_TEST_LEFTOVERS}::test_pages_of_a_server_answer_the_worker_alone",
    ),
)

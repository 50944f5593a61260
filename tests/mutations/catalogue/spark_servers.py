"""A worker's Spark Connect servers: whose they are, and what follows when one dies."""

from tests.mutations.mutation import Mutation, Promise, mutation

_SERVERS = "worker/shoal/worker/spark"
_TESTS = "tests/integration/worker/spark"

MUTATIONS: tuple[Mutation, ...] = (
    mutation(
        "all projects of a worker share one Spark server",
        Promise.SECRETS_STAY,
        f"{_SERVERS}/servers.py",
        (
            "while (kept := self._of(project)) is None:",
            'while (kept := self._of("one for all")) is None:',
        ),
        (
            f"{_TESTS}/test_sharing.py::test_tasks_of_a_project_share_a_server_and_other_projects_have_their_own",
        ),
    ),
    mutation(
        "a server's token is shown in the log",
        Promise.SECRETS_STAY,
        f"{_SERVERS}/access.py",
        ("[*self._attempt.masks, *forms([server.token])]", "[*self._attempt.masks]"),
        (
            f"{_TESTS}/test_sharing.py::test_tasks_of_a_project_share_a_server_and_other_projects_have_their_own",
        ),
    ),
    mutation(
        "bystanders fail with a server that dies",
        Promise.PROGRESS,
        f"{_SERVERS}/servers.py",
        ("len(kept.users) > 1", "len(kept.users) > 99"),
        (f"{_TESTS}/test_dying.py::test_server_that_dies_under_several_tasks_interrupts_them_all",),
    ),
    mutation(
        "a server that answers nobody is kept",
        Promise.PROGRESS,
        f"{_SERVERS}/servers.py",
        ("if silent >= MOST_SILENT:", "if silent >= 1_000_000:"),
        (f"{_TESTS}/test_dying.py::test_server_that_answers_nobody_is_ended",),
    ),
    mutation(
        "an unused server keeps its place",
        Promise.PROGRESS,
        f"{_SERVERS}/servers.py",
        ("min(idle, key=lambda one: one.idle_since).leave.set()", "pass"),
        (
            f"{_TESTS}/test_sharing.py::test_unused_server_is_stopped_and_its_place_goes_to_another_project",
        ),
    ),
    mutation(
        "jobs of users that have left go on",
        Promise.PROGRESS,
        f"{_SERVERS}/servers.py",
        ("not self.users or session in self.left", "not self.users"),
        (
            f"{_TESTS}/test_leftovers.py::test_job_of_one_that_has_left_is_ended_beside_others_that_go_on",
        ),
    ),
    mutation(
        "an unused server goes on with what programs have left",
        Promise.PROGRESS,
        f"{_SERVERS}/servers.py",
        ("not self.users or session in self.left", "session in self.left"),
        (
            f"{_TESTS}/test_leftovers.py::test_unused_server_ends_what_sessions_of_a_program_have_left",
        ),
    ),
    mutation(
        "the jobs of others end with those of one that has left",
        Promise.NOTHING_LOST,
        f"{_SERVERS}/servers.py",
        ("not self.users or session in self.left", "True"),
        (
            f"{_TESTS}/test_leftovers.py::test_job_of_one_that_has_left_is_ended_beside_others_that_go_on",
        ),
    ),
    mutation(
        "the pages of a server answer everybody",
        Promise.SECRETS_STAY,
        f"{_SERVERS}/jobs.py",
        ('"spark.ui.filters": jws_filter,', ""),
        (f"{_TESTS}/test_leftovers.py::test_pages_of_a_server_answer_the_worker_alone",),
    ),
)

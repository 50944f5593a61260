"""Environments: who may use them, when that counts, and what a failed setup keeps from running."""

from tests.mutations.mutation import Mutation, Promise
from tests.mutations.place import Place

_ENVIRONMENTS = Place("shoal.master.dispatch.environments")
_STORED = Place("shoal.sql.repositories.definitions.environments")
_SETUP = Place("shoal.worker.processes.environment")
_SETTLING = Place("shoal.worker.results.settlement")
_CONTEXT = Place("shoal.worker.execution.context")
_NAMED = Place("shoal.worker.processes.environment")
_MASTER = "tests/integration/master/dispatch/test_environments.py"
_SQL = "tests/integration/sql/definitions/test_environments.py"
_AGENT = "tests/integration/worker/agent/test_environments.py"

MUTATIONS: tuple[Mutation, ...] = (
    Promise.TEXT_STAYS_TEXT.broken_if(
        "the worker groups of an environment count only when a definition is stored",
        _ENVIRONMENTS["environment_of"].never("not allows(...)"),
        f"{_MASTER}::test_worker_group_counts_when_the_task_is_fetched[sqlite]",
        f"{_MASTER}::"
        "test_master_fails_the_task_whose_environment_has_changed_since_and_runs_the_others",
    ),
    Promise.PROGRESS.broken_if(
        "a definition may name an environment of other worker groups",
        _STORED["_unfit"].replace("allows(...)", "(groups := ())"),
        f"{_SQL}::test_workflows_environment_has_to_fit_the_tasks_that_run_in_it[sqlite]",
    ),
    Promise.PROGRESS.broken_if(
        "an environment goes while workflows name it",
        _STORED["delete"].replace("await self.users_of(name)", "[]"),
        f"{_SQL}::test_none_goes_while_the_newest_version_of_a_workflow_names_it[sqlite-fields0]",
    ),
    Promise.PROGRESS.broken_if(
        "an environment goes while a definition that names it is being stored",
        _STORED["_held"].replace("(...).with_for_update(...)", "..."),
        f"{_SQL}::test_one_is_not_deleted_while_a_definition_that_names_it_is_stored[postgresql]",
    ),
    Promise.TEXT_STAYS_TEXT.broken_if(
        "a program runs although its setup has failed",
        _SETUP.replace_text('if [ "$shoal_code" != 0 ]; then exit "$shoal_code"; fi', ":"),
        f"{_AGENT}::"
        "test_setup_that_fails_fails_the_task_and_its_program_never_starts"
        "[return 7-7-exit code 7]",
    ),
    Promise.DURABLE_RESULTS.broken_if(
        "a setup that leaves the shell counts as a success",
        _SETUP.replace_text("shoal_code=1", "shoal_code=0"),
        f"{_AGENT}::"
        "test_setup_that_fails_fails_the_task_and_its_program_never_starts"
        "[exit 0-1-exit code 1: the setup has called exit]",
    ),
    Promise.DURABLE_RESULTS.broken_if(
        "the success of another program than the task's is the task's",
        _SETTLING["confirmed"].replace("replace(...)", "record"),
        f"{_AGENT}::test_success_of_another_program_than_the_tasks_is_none[exec true]",
    ),
    Promise.TEXT_STAYS_TEXT.broken_if(
        "a setup reads what is meant for the program",
        _SETUP.replace_text(" </dev/null", ""),
        f"{_AGENT}::test_types_that_start_programs_of_others_are_told_by_standard_input",
    ),
    Promise.TEXT_STAYS_TEXT.broken_if(
        "variables of an environment replace the parameters of a task",
        _CONTEXT["prepare"].replace(
            "{**around, **named.variables, **variables, **own}",
            "{**around, **variables, **named.variables, **own}",
        ),
        f"{_AGENT}::test_variables_come_between_the_workers_and_the_parameters",
    ),
    Promise.TEXT_STAYS_TEXT.broken_if(
        "a missing interpreter is replaced by the worker's own",
        _NAMED["_interpreter"].replace("there = ...", "there = ...\nreturn found"),
        f"{_AGENT}::test_what_the_worker_does_not_have_is_told_with_environment_and_group",
    ),
    Promise.KILLED_MEANS_DEAD.broken_if(
        "what a task has left is settled outside of its environment",
        _SETTLING["_try"].replace(
            "list(argv) if work.setup is None else work.setup.argv(argv)", "list(argv)"
        ),
        f"{_AGENT}::test_what_a_program_has_left_is_settled_in_its_environment",
    ),
)

"""Environments: who may use them, when that counts, and what a failed setup keeps from running."""

from tests.mutations.mutation import Mutation, Promise, mutation

_NAMED = "worker/shoal/worker/execution/environment/named.py"
_SETUP = "worker/shoal/worker/execution/environment/setup.py"
_STORED = "sql/shoal/sql/repositories/definitions/environments.py"
_AGENT = "tests/integration/worker/test_agent_environments.py"
_SQL = "tests/integration/sql/test_environments.py"
_MASTER = "tests/integration/master/test_environments.py"

MUTATIONS: tuple[Mutation, ...] = (
    mutation(
        "the worker groups of an environment count only when a definition is stored",
        Promise.TEXT_STAYS_TEXT,
        "master/shoal/master/dispatch/environments.py",
        ("if not allows(found.spec.worker_groups, group):", "if False:"),
        (
            f"{_MASTER}::test_worker_group_counts_when_the_task_is_fetched[sqlite]",
            f"{_MASTER}::test_master_fails_the_task_whose_environment_has_changed_since"
            "_and_runs_the_others",
        ),
    ),
    mutation(
        "a definition may name an environment of other worker groups",
        Promise.PROGRESS,
        _STORED,
        ("if not allows(groups := found[name], task.worker_group):", "if not (groups := ()):"),
        (f"{_SQL}::test_workflows_environment_has_to_fit_the_tasks_that_run_in_it[sqlite]",),
    ),
    mutation(
        "an environment goes while workflows name it",
        Promise.PROGRESS,
        _STORED,
        ("if users := await self.users_of(name):", "if users := []:"),
        (
            f"{_SQL}::test_none_goes_while_the_newest_version_of_a_workflow_names_it"
            "[sqlite-fields0]",
        ),
    ),
    mutation(
        "an environment goes while a definition that names it is being stored",
        Promise.PROGRESS,
        _STORED,
        ("            .with_for_update(read=True, key_share=True)\n", ""),
        (
            f"{_SQL}::test_one_is_not_deleted_while_a_definition_that_names_it_is_stored"
            "[postgresql]",
        ),
    ),
    mutation(
        "a program runs although its setup has failed",
        Promise.TEXT_STAYS_TEXT,
        _SETUP,
        ('if [ "$shoal_code" != 0 ]; then exit "$shoal_code"; fi', ":"),
        (
            f"{_AGENT}::test_setup_that_fails_fails_the_task_and_its_program_never_starts"
            "[return 7-7-exit code 7]",
        ),
    ),
    mutation(
        "a setup that leaves the shell counts as a success",
        Promise.DURABLE_RESULTS,
        _SETUP,
        ("then shoal_code=1\n", "then shoal_code=0\n"),
        (
            f"{_AGENT}::test_setup_that_fails_fails_the_task_and_its_program_never_starts"
            "[exit 0-1-exit code 1: the setup has called exit]",
        ),
    ),
    mutation(
        "the success of another program than the task's is the task's",
        Promise.DURABLE_RESULTS,
        "worker/shoal/worker/execution/settling.py",
        ("return replace(record, outcome=Outcome.FAILED, reason=NOT_REACHED)", "return record"),
        (f"{_AGENT}::test_success_of_another_program_than_the_tasks_is_none[exec true]",),
    ),
    mutation(
        "a setup reads what is meant for the program",
        Promise.TEXT_STAYS_TEXT,
        _SETUP,
        ('. "$shoal_setup" </dev/null', '. "$shoal_setup"'),
        (f"{_AGENT}::test_types_that_start_programs_of_others_are_told_by_standard_input",),
    ),
    mutation(
        "variables of an environment replace the parameters of a task",
        Promise.TEXT_STAYS_TEXT,
        "worker/shoal/worker/execution/context.py",
        (
            "{**around, **named.variables, **variables, **own}",
            "{**around, **variables, **named.variables, **own}",
        ),
        (f"{_AGENT}::test_variables_come_between_the_workers_and_the_parameters",),
    ),
    mutation(
        "a missing interpreter is replaced by the worker's own",
        Promise.TEXT_STAYS_TEXT,
        _NAMED,
        (
            "    raise EnvironmentUnusable(\n        given.name,",
            "    return found\n    raise EnvironmentUnusable(\n        given.name,",
        ),
        (f"{_AGENT}::test_what_the_worker_does_not_have_is_told_with_environment_and_group",),
    ),
    mutation(
        "what a task has left is settled outside of its environment",
        Promise.KILLED_MEANS_DEAD,
        "worker/shoal/worker/execution/settling.py",
        (
            "argv=list(argv) if work.setup is None else work.setup.argv(argv),",
            "argv=list(argv),",
        ),
        (f"{_AGENT}::test_what_a_program_has_left_is_settled_in_its_environment",),
    ),
)

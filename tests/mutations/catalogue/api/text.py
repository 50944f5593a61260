"""Text from outside: expressions stay small, log lines and parameters turn into nothing else."""

from tests.mutations.mutation import Mutation, Promise
from tests.mutations.place import Place

_BOUNDED = Place("shoal.core.logic.bounded")
_EXPRESSIONS = Place("shoal.core.logic.expressions")
_RECORDS = Place("shoal.worker.supervisor.shim.records")
_OUTPUTS = Place("shoal.worker.supervisor.shim.outputs")
_CONTEXT = Place("shoal.worker.execution.context")
_PAYLOADS = Place("shoal.master.dispatch.payloads")
_TEMPLATE = Place("shoal.core.macros.template")
_WORKFLOW = Place("shoal.core.checks.workflow")
_HINTS = Place("shoal.core.hints")
_PARAMETERS = Place("shoal.api.routes.parameters")
_COMMANDS = Place("shoal.api.schemas.commands")
_BODY = Place("shoal.api.web.body")
_CONSOLE = Place("shoal.client.cli.terminal.output")
_TESTS = "tests/unit/core/logic/test_expressions.py"
_HOSTILE = f"{_TESTS}::test_hostile_expression_costs_little_and_says_so_in_few_words"
_AGENT = "tests/integration/worker/agent/test_outputs.py"
_LINES = "tests/unit/worker/execution/test_outputs.py"
_MISTAKES = "tests/unit/core/checks/test_many_mistakes.py"
_BODIES = "tests/integration/api/web/test_strict_bodies.py"

MUTATIONS: tuple[Mutation, ...] = (
    Promise.PROGRESS.broken_if(
        "% formats text",
        _BOUNDED.replace("_on_numbers('%', operator.mod)", "operator.mod"),
        f"{_TESTS}::test_remainder_is_one_of_numbers_only",
    ),
    Promise.PROGRESS.broken_if(
        "a text is repeated as often as an expression says",
        _BOUNDED["_times"].drop("_check_made(...)"),
        f"{_HOSTILE}[repeated]",
    ),
    Promise.PROGRESS.broken_if(
        "an expression works on a parameter of any size",
        _BOUNDED["small"].replace(
            "isinstance(value, str) and len(value) > MOST_TEXT", "value is None"
        ),
        f"{_TESTS}::test_what_is_too_large_is_not_worked_on",
    ),
    Promise.PROGRESS.broken_if(
        "an expression's error ends more than its task",
        _EXPRESSIONS["is_true"].replace("Exception", "ValueError"),
        f"{_TESTS}::test_whatever_an_evaluation_raises_is_a_reason",
    ),
    Promise.PROGRESS.broken_if(
        "reasons of expressions have any length",
        _EXPRESSIONS["__init__"].replace("shortened(repr(text), _SHOWN)", "repr(text)"),
        f"{_HOSTILE}[quoted in an error]",
    ),
    Promise.TEXT_STAYS_TEXT.broken_if(
        "any log sets outputs",
        _RECORDS["_take_outputs"].drop("launch.get('outputs_from_log')"),
        f"{_AGENT}::test_what_a_task_only_shows_sets_nothing_and_fails_nothing",
    ),
    Promise.TEXT_STAYS_TEXT.broken_if(
        "a line of the log sets outputs wherever the mark stands",
        _OUTPUTS.replace("b'\\n' + MARK", "b' ' + MARK"),
        f"{_LINES}::test_lines_of_the_log_set_values",
    ),
    Promise.PROGRESS.broken_if(
        "a line of the log that cannot be used fails the attempt",
        _OUTPUTS["_add_from_log"].replace("BadOutput", "KeyError"),
        f"{_LINES}::test_line_of_the_log_that_cannot_be_used_is_none[reserved]",
    ),
    Promise.TEXT_STAYS_TEXT.broken_if(
        "outputs are variables of any name",
        _CONTEXT["prepare"].replace("{*base, *own, *payload.undeclared}", "own"),
        f"{_AGENT}::test_value_that_is_not_declared_is_a_variable_with_a_prefix_only",
    ),
    Promise.TEXT_STAYS_TEXT.broken_if(
        "outputs count as declared",
        _PAYLOADS["_unnamed"].replace("sorted(names)", "sorted(names)[:0]"),
        "tests/unit/master/test_payloads.py::"
        "test_output_is_a_variable_of_its_own_name_only_where_it_is_declared_or_named",
    ),
    Promise.PROGRESS.broken_if(
        "mistakes of a text are told without end",
        _TEMPLATE["scan"].replace("len(self._problems) >= MOST_MISTAKES", "self._problems is None"),
        f"{_MISTAKES}::test_mistakes_of_a_text_are_told_up_to_a_hundred",
    ),
    Promise.PROGRESS.broken_if(
        "problems of a definition are told without end",
        _WORKFLOW["add"].replace("len(self.problems) >= MOST_MISTAKES", "self.problems is None"),
        f"{_MISTAKES}::test_unknown_upstream_tasks_are_told_up_to_a_hundred",
    ),
    Promise.PROGRESS.broken_if(
        "a task names any number of upstream tasks",
        _WORKFLOW["_check_graph"].replace("len(parents) > MAX_UPSTREAM", "parents is None"),
        f"{_MISTAKES}::test_upstream_tasks_have_a_limit",
    ),
    Promise.PROGRESS.broken_if(
        "every misspelt name is compared with all others",
        _HINTS["similar"].replace("islice(known, self._left)", "known"),
        f"{_MISTAKES}::test_only_the_first_names_are_compared_with_others",
    ),
    Promise.PROGRESS.broken_if(
        "a large value is checked in the event loop",
        _PARAMETERS["put_parameter"].replace(
            "await asyncio.to_thread(...)", "definition_problem(name, body.value)"
        ),
        f"{_BODIES}::test_others_are_answered_while_a_large_body_is_checked[a value]",
    ),
    Promise.PROGRESS.broken_if(
        "the preview of a large start is made in the event loop",
        Place("shoal.api.operations.runs.rendered", "_planned").never(
            "len(spec.tasks) > MOST_AT_ONCE"
        ),
        "tests/integration/api/web/test_large_answers.py::"
        "test_work_on_many_tasks_and_large_bodies_leaves_the_event_loop",
    ),
    Promise.PROGRESS.broken_if(
        "the audit reads a large body in the event loop",
        Place("shoal.api.endpoints.route", "StrictRoute.turn").drop(
            "record_of(request).has_large_body = request.is_large"
        ),
        "tests/integration/api/web/test_large_answers.py::"
        "test_work_on_many_tasks_and_large_bodies_leaves_the_event_loop",
    ),
    Promise.PROGRESS.broken_if(
        "threads of an API keep the interpreter from its event loop for 5 ms",
        Place("shoal.client.local.roles", "run_role").never('role == "api"'),
        "tests/integration/api/web/test_serve.py::"
        "test_threads_of_an_api_leave_the_interpreter_to_its_event_loop",
    ),
    Promise.TEXT_STAYS_TEXT.broken_if(
        "truth values are numbers of instances",
        _COMMANDS["CommandIn"].replace(
            "instance_id: StrictInt | None = ...", "instance_id: int | None = ..."
        ),
        f"{_BODIES}::test_value_of_another_type_is_refused_at_its_field[stop-truth]",
    ),
    Promise.TEXT_STAYS_TEXT.broken_if(
        "a name may stand twice in a body",
        _BODY["_parse"].drop("_check_names(content)"),
        f"{_BODIES}::test_name_that_stands_twice_is_refused[field]",
    ),
    Promise.TEXT_STAYS_TEXT.broken_if(
        "what is printed commands the terminal",
        _CONSOLE["render"].replace("segment.control or segment.text.isprintable()", "segment"),
        "tests/unit/client/test_rendering.py::"
        "test_nothing_that_is_printed_can_command_the_terminal",
    ),
)

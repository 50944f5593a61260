"""Text from outside: expressions stay small, log lines and parameters turn into nothing else."""

from tests.mutations.mutation import Mutation, Promise, mutation

_BOUNDED = "core/shoal/core/logic/bounded.py"
_EXPRESSIONS = "core/shoal/core/logic/expressions.py"
_OUTPUTS = "worker/shoal/worker/supervisor/shim/outputs.py"
_LINES = "tests/unit/worker/test_outputs.py"
_AGENT = "tests/integration/worker/test_agent_outputs.py"
_MISTAKES = "tests/unit/core/test_many_mistakes.py"
_BODIES = "tests/integration/api/test_strict_bodies.py"
_TESTS = "tests/unit/core/test_expressions.py"
_HOSTILE = f"{_TESTS}::test_hostile_expression_costs_little_and_says_so_in_few_words"

MUTATIONS: tuple[Mutation, ...] = (
    mutation(
        "% formats text",
        Promise.PROGRESS,
        _BOUNDED,
        ('ast.Mod: _on_numbers("%", operator.mod),', "ast.Mod: operator.mod,"),
        (f"{_TESTS}::test_remainder_is_one_of_numbers_only",),
    ),
    mutation(
        "a text is repeated as often as an expression says",
        Promise.PROGRESS,
        _BOUNDED,
        ("            _check_made(len(text) * max(0, small(count)))\n", ""),
        (f"{_HOSTILE}[repeated]",),
    ),
    mutation(
        "an expression works on a parameter of any size",
        Promise.PROGRESS,
        _BOUNDED,
        ("if isinstance(value, str) and len(value) > MOST_TEXT:", "if value is None:"),
        (f"{_TESTS}::test_what_is_too_large_is_not_worked_on",),
    ),
    mutation(
        "an expression's error ends more than its task",
        Promise.PROGRESS,
        _EXPRESSIONS,
        ("except Exception as error:", "except ValueError as error:"),
        (f"{_TESTS}::test_whatever_an_evaluation_raises_is_a_reason",),
    ),
    mutation(
        "reasons of expressions have any length",
        Promise.PROGRESS,
        _EXPRESSIONS,
        ("shortened(repr(text), _SHOWN)", "repr(text)"),
        (f"{_HOSTILE}[quoted in an error]",),
    ),
    mutation(
        "any log sets outputs",
        Promise.TEXT_STAYS_TEXT,
        "worker/shoal/worker/supervisor/shim/records.py",
        ('launch.get("outputs_from_log") and record["log_bytes"]', 'record["log_bytes"]'),
        (f"{_AGENT}::test_what_a_task_only_shows_sets_nothing_and_fails_nothing",),
    ),
    mutation(
        "a line of the log sets outputs wherever the mark stands",
        Promise.TEXT_STAYS_TEXT,
        _OUTPUTS,
        ('_START = b"\\n" + MARK', '_START = b" " + MARK'),
        (f"{_LINES}::test_lines_of_the_log_set_values",),
    ),
    mutation(
        "a line of the log that cannot be used fails the attempt",
        Promise.PROGRESS,
        _OUTPUTS,
        (
            "        except BadOutput:\n            continue\n",
            "        except KeyError:\n            continue\n",
        ),
        (f"{_LINES}::test_line_of_the_log_that_cannot_be_used_is_none[reserved]",),
    ),
    mutation(
        "outputs are variables of any name",
        Promise.TEXT_STAYS_TEXT,
        "worker/shoal/worker/execution/context.py",
        ("taken={*base, *own, *payload.undeclared}", "taken=own"),
        (f"{_AGENT}::test_value_that_is_not_declared_is_a_variable_with_a_prefix_only",),
    ),
    mutation(
        "outputs count as declared",
        Promise.TEXT_STAYS_TEXT,
        "master/shoal/master/dispatch/payloads.py",
        ("    return sorted(names)\n", "    return sorted(names)[:0]\n"),
        (
            "tests/unit/master/test_payloads.py::"
            "test_output_is_a_variable_of_its_own_name_only_where_it_is_declared_or_named",
        ),
    ),
    mutation(
        "mistakes of a text are told without end",
        Promise.PROGRESS,
        "core/shoal/core/macros/template.py",
        ("if len(self._problems) >= MOST_MISTAKES:", "if self._problems is None:"),
        (f"{_MISTAKES}::test_mistakes_of_a_text_are_told_up_to_a_hundred",),
    ),
    mutation(
        "problems of a definition are told without end",
        Promise.PROGRESS,
        "core/shoal/core/checks/workflow.py",
        ("if len(self.problems) >= MOST_MISTAKES:", "if self.problems is None:"),
        (f"{_MISTAKES}::test_unknown_upstream_tasks_are_told_up_to_a_hundred",),
    ),
    mutation(
        "a task names any number of upstream tasks",
        Promise.PROGRESS,
        "core/shoal/core/checks/workflow.py",
        ("if len(parents) > MAX_UPSTREAM:", "if parents is None:"),
        (f"{_MISTAKES}::test_upstream_tasks_have_a_limit",),
    ),
    mutation(
        "every misspelt name is compared with all others",
        Promise.PROGRESS,
        "core/shoal/core/hints.py",
        ("compared = list(islice(known, self._left))", "compared = list(known)"),
        (f"{_MISTAKES}::test_only_the_first_names_are_compared_with_others",),
    ),
    mutation(
        "a large value is checked in the event loop",
        Promise.PROGRESS,
        "api/shoal/api/routes/parameters.py",
        (
            "await asyncio.to_thread(definition_problem, name, body.value)",
            "definition_problem(name, body.value)",
        ),
        (f"{_BODIES}::test_others_are_answered_while_a_large_body_is_checked[a value]",),
    ),
    mutation(
        "truth values are numbers of instances",
        Promise.TEXT_STAYS_TEXT,
        "api/shoal/api/schemas/commands.py",
        (
            "    instance_id: StrictInt | None = Field(",
            "    instance_id: int | None = Field(",
        ),
        (f"{_BODIES}::test_value_of_another_type_is_refused_at_its_field[stop-truth]",),
    ),
    mutation(
        "a name may stand twice in a body",
        Promise.TEXT_STAYS_TEXT,
        "api/shoal/api/web/body.py",
        ("    _check_names(content)\n", ""),
        (f"{_BODIES}::test_name_that_stands_twice_is_refused[field]",),
    ),
    mutation(
        "what is printed commands the terminal",
        Promise.TEXT_STAYS_TEXT,
        "client/shoal/client/cli/terminal/console.py",
        ("if segment.control or segment.text.isprintable():", "if segment:"),
        (
            "tests/unit/client/test_rendering.py::"
            "test_nothing_that_is_printed_can_command_the_terminal",
        ),
    ),
)

"""SQL tasks: values stay values, secrets stay secret, and what may still run is looked for."""

from tests.mutations.mutation import Mutation, Promise, mutation

_SQL = "worker/shoal/worker/types/sql"
_UNIT = "tests/unit/worker/sql"

MUTATIONS: tuple[Mutation, ...] = (
    mutation(
        "a value is pasted into the statement",
        Promise.TEXT_STAYS_TEXT,
        f"{_SQL}/statements/binding.py",
        (
            "return self._placeholder(len(self._values) - 1, kind.value), True",
            """return "'" + scope.parameters[name] + "'", True""",
        ),
        (f"{_UNIT}/test_binding.py::test_no_value_reaches_the_text",),
    ),
    mutation(
        "a semicolon inside a literal ends the statement",
        Promise.TEXT_STAYS_TEXT,
        f"{_SQL}/statements/lexer.py",
        ('return f"{quote}[^{quote}]*+', 'return f"{quote}[^{quote};]*+'),
        (f"{_UNIT}/test_splitting.py::test_each_statement_of_a_script_is_found",),
    ),
    mutation(
        "a cell of CSV is a formula",
        Promise.TEXT_STAYS_TEXT,
        f"{_SQL}/results/files.py",
        ("""return text if _NUMBER.fullmatch(text) else "'" + text""", "return text"),
        (f"{_UNIT}/test_results.py::test_csv_keeps_numbers_and_makes_formulas_text",),
    ),
    mutation(
        "a value in the log steers the terminal",
        Promise.TEXT_STAYS_TEXT,
        f"{_SQL}/results/preview.py",
        ("if unicodedata.category(character) not in _HIDDEN:", "if character:"),
        (f"{_UNIT}/test_preview.py::test_what_steers_a_terminal_or_hides_is_written_out",),
    ),
    mutation(
        "the log shows the beginning of a secret",
        Promise.SECRETS_STAY,
        f"{_SQL}/plan.py",
        ("if any(secret and secret in value for secret in secrets):", "if secrets is None:"),
        ("tests/integration/worker/sql/test_running.py::test_secrets_in_parameters_are_not_shown",),
    ),
    mutation(
        "a statement whose connection was lost is taken for ended",
        Promise.KILLED_MEANS_DEAD,
        f"{_SQL}/run.py",
        ("        self.is_idle = False\n        result =", "        result ="),
        (f"{_UNIT}/test_run.py::test_attempt_is_settled_only_when_nothing_can_run_any_more",),
    ),
    mutation(
        "committed statements are run again",
        Promise.GUARDED_STATES,
        f"{_SQL}/verdicts.py",
        ("    if kept:\n", "    if kept < 0:\n"),
        (f"{_UNIT}/test_run.py::test_what_is_committed_already_is_not_done_again",),
    ),
    mutation(
        "a statement that ignores its cancellation runs on",
        Promise.KILLED_MEANS_DEAD,
        f"{_SQL}/cancelling.py",
        (
            'self._attempt("terminate")',
            "pass",
        ),
        (
            f"{_UNIT}/test_run.py"
            "::test_statement_that_ignores_its_cancellation_loses_its_connection",
        ),
    ),
)

"""SQL tasks: values stay values, secrets stay secret, and what may still run is looked for."""

from tests.mutations.mutation import Mutation, Promise
from tests.mutations.place import Place

_BINDING = Place("shoal.worker.types.sql.statements.parameters")
_LEXER = Place("shoal.worker.types.sql.statements.lexer")
_FILES = Place("shoal.worker.types.sql.results.files")
_PREVIEW = Place("shoal.worker.types.sql.results.preview")
_PLAN = Place("shoal.worker.types.sql.plan")
_RUN = Place("shoal.worker.types.sql.run")
_VERDICTS = Place("shoal.worker.types.sql.verdicts")
_CANCELLING = Place("shoal.worker.types.sql.cancellation")
_UNIT = "tests/unit/worker/sql"
_TEST_RUN = f"{_UNIT}/test_run.py"

MUTATIONS: tuple[Mutation, ...] = (
    Promise.TEXT_STAYS_TEXT.broken_if(
        "a value is pasted into the statement",
        _BINDING["_replacement"].replace(
            "self._placeholder(...)", '"\'" + scope.parameters[name] + "\'"'
        ),
        f"{_UNIT}/test_binding.py::test_no_value_reaches_the_text",
    ),
    Promise.TEXT_STAYS_TEXT.broken_if(
        "a semicolon inside a literal ends the statement",
        _LEXER["_quoted"].replace("']*+(?:'", "';]*+(?:'"),
        f"{_UNIT}/test_splitting.py::test_each_statement_of_a_script_is_found",
    ),
    Promise.TEXT_STAYS_TEXT.broken_if(
        "a cell of CSV is a formula",
        _FILES["neutral"].replace('text if _NUMBER.fullmatch(text) else "\'" + text', "text"),
        f"{_UNIT}/test_results.py::test_csv_keeps_numbers_and_makes_formulas_text",
    ),
    Promise.TEXT_STAYS_TEXT.broken_if(
        "a value in the log steers the terminal",
        _PREVIEW["_visible"].replace("unicodedata.category(character) not in _HIDDEN", "character"),
        f"{_UNIT}/test_preview.py::test_what_steers_a_terminal_or_hides_is_written_out",
    ),
    Promise.SECRETS_STAY.broken_if(
        "the log shows the beginning of a secret",
        _PLAN["_shown"].replace("any(...)", "secrets is None"),
        "tests/integration/worker/sql/test_running.py::test_secrets_in_parameters_are_not_shown",
    ),
    Promise.KILLED_MEANS_DEAD.broken_if(
        "a statement whose connection was lost is taken for ended",
        _RUN["_run"].drop("self.is_idle = False"),
        f"{_TEST_RUN}::test_attempt_is_settled_only_when_nothing_can_run_any_more",
    ),
    Promise.GUARDED_STATES.broken_if(
        "committed statements are run again",
        _VERDICTS["failed"].replace("if kept:\n    ...", "if kept < 0:\n    ..."),
        f"{_TEST_RUN}::test_what_is_committed_already_is_not_done_again",
    ),
    Promise.KILLED_MEANS_DEAD.broken_if(
        "a statement that ignores its cancellation runs on",
        _CANCELLING["_cancel"].drop("self._attempt('terminate')"),
        f"{_TEST_RUN}::test_statement_that_ignores_its_cancellation_loses_its_connection",
    ),
)

"""What an attempt leaves running elsewhere, and how its failure is told."""

from tests.mutations.mutation import Mutation, Promise, mutation

_SETTLING = "worker/shoal/worker/execution/settling.py"
_TESTS = "tests/integration/worker/test_agent_child_types.py"
_ONCE = "tests/integration/worker/test_agent_once.py"
_HTTP = "tests/unit/worker/http/test_judging.py"

MUTATIONS: tuple[Mutation, ...] = (
    mutation(
        "a killed attempt is over while its work goes on elsewhere",
        Promise.KILLED_MEANS_DEAD,
        _SETTLING,
        ("if settling is None:\n            return record", "if True:\n            return record"),
        (f"{_TESTS}::test_killed_is_reported_when_nothing_goes_on_elsewhere[deaf-notes2]",),
    ),
    mutation(
        "what could not be settled is called killed",
        Promise.KILLED_MEANS_DEAD,
        _SETTLING,
        (
            "replace(record, outcome=Outcome.FAILED, reason=reason, context=known)",
            "replace(record, reason=reason, context=known)",
        ),
        (f"{_TESTS}::test_what_cannot_be_settled_is_not_called_killed",),
    ),
    mutation(
        "the reason of a failure shows secrets",
        Promise.SECRETS_STAY,
        _SETTLING,
        ("reason=Masker(attempt.masks).mask(reason)", "reason=reason"),
        (
            f"{_TESTS}::test_failure_says_why_and_whether_to_try_again"
            "[wrong-no such table: see ***-True]",
        ),
    ),
    mutation(
        "the password of a data source is not masked",
        Promise.SECRETS_STAY,
        "worker/shoal/worker/execution/runner.py",
        ("*filter(None, passwords)", "*()"),
        (f"{_TESTS}::test_work_gets_all_it_needs_and_nothing_of_it_touches_the_disk",),
    ),
    mutation(
        "a request that holds secrets is written to the disk",
        Promise.SECRETS_STAY,
        "worker/shoal/worker/supervisor/shim/child.py",
        (
            'source = os.memfd_create("stdin", os.MFD_CLOEXEC)',
            'source = os.open("/tmp", os.O_RDWR | os.O_TMPFILE)',
        ),
        (f"{_TESTS}::test_work_gets_all_it_needs_and_nothing_of_it_touches_the_disk",),
    ),
    mutation(
        "a failure that would be the same is tried again",
        Promise.PROGRESS,
        "core/shoal/core/decide/ending.py",
        ("if event.permanent and signal is TaskSignal.FAIL:", "if event.permanent and False:"),
        (
            "tests/unit/core/test_decide.py::"
            "test_failure_that_would_be_the_same_is_not_retried_until_a_person_says_so",
        ),
    ),
    mutation(
        "what may have taken effect is run again when its worker is lost",
        Promise.SENT_ONCE,
        "core/shoal/core/decide/ending.py",
        ("elif ended.task in draft.run.plan.once:", "elif not ended.task:"),
        (
            "tests/unit/core/test_decide.py::"
            "test_what_may_have_taken_effect_is_not_run_again_by_itself_after_a_loss",
        ),
    ),
    mutation(
        "what may have taken effect is run again when its process is killed",
        Promise.SENT_ONCE,
        _SETTLING,
        ("elif once is not None and record.outcome is Outcome.FAILED:", "elif not record.id:"),
        (
            f"{_ONCE}::test_request_whose_process_is_killed_is_sent_again_if_that_does_no_harm[POST]",
        ),
    ),
    mutation(
        "a request leaves without a note",
        Promise.SENT_ONCE,
        "worker/shoal/worker/types/http/failures.py",
        ("            self._note(_NOT_AGAIN)", "            pass"),
        (f"{_HTTP}::test_fate_outlives_the_process[False-None-True]",),
    ),
    mutation(
        "the note of a request that the server has not begun stays",
        Promise.PROGRESS,
        "worker/shoal/worker/types/http/failures.py",
        ("            self._note(None)", "            pass"),
        (f"{_HTTP}::test_fate_outlives_the_process[False-429-False]",),
    ),
    mutation(
        "statements are committed without a note",
        Promise.SENT_ONCE,
        "worker/shoal/worker/types/sql/run.py",
        ("if commits_itself or not (self._in_transaction or planned.only_reads):", "if False:"),
        (
            "tests/integration/worker/sql/test_running.py::"
            "test_what_may_be_committed_is_noted_for_when_the_process_is_killed",
        ),
    ),
    mutation(
        "a transaction is committed without a note",
        Promise.SENT_ONCE,
        "worker/shoal/worker/types/sql/run.py",
        (
            "            self._note_commit()\n            self._session.commit()",
            "            self._session.commit()",
        ),
        (
            "tests/integration/worker/sql/test_running.py::"
            "test_what_may_be_committed_is_noted_for_when_the_process_is_killed",
        ),
    ),
    mutation(
        "after a restart what may have taken effect is run again",
        Promise.SENT_ONCE,
        "worker/shoal/worker/main.py",
        (
            "of_earlier_life(ExitRecord.from_json(entry.record))",
            "ExitRecord.from_json(entry.record)",
        ),
        (
            "tests/unit/worker/test_leftover_results.py::"
            "test_what_may_have_taken_effect_is_not_done_again_after_a_restart"
            "[SIGNALLED-context0-True]",
        ),
    ),
)

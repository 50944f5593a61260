"""What an attempt leaves running elsewhere, and how its failure is told."""

from tests.mutations.mutation import Mutation, Promise, mutation

_SETTLING = "worker/shoal/worker/execution/settling.py"
_TESTS = "tests/integration/worker/test_agent_child_types.py"

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
            "replace(record, outcome=Outcome.FAILED, reason=reason)",
            "replace(record, reason=reason)",
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
)

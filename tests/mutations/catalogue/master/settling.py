"""What an attempt leaves running elsewhere, and how its failure is told."""

from tests.mutations.mutation import Mutation, Promise
from tests.mutations.place import Place

_SETTLING = Place("shoal.worker.results.settlement")
_RUNNER = Place("shoal.worker.execution.runner")
_CHILD = Place("shoal.worker.supervisor.shim.child")
_ENDING = Place("shoal.core.decide.endings")
_FAILURES = Place("shoal.worker.types.http.failures")
_RUN = Place("shoal.worker.types.sql.run")
_MAIN = Place("shoal.worker.main")
_TRIAL = Place("shoal.client.trial.execution")
_TESTS = "tests/integration/worker/agent/test_child_types.py"
_ONCE = "tests/integration/worker/faults/test_once.py"
_HTTP = "tests/unit/worker/http/test_judging.py"
_TEST_DECIDE = "tests/unit/core/decide/test_decide.py"
_TEST_RUNNING = "tests/integration/worker/sql/test_running.py"

MUTATIONS: tuple[Mutation, ...] = (
    Promise.KILLED_MEANS_DEAD.broken_if(
        "a killed attempt is over while its work goes on elsewhere",
        _SETTLING["complete"].always("settling is None"),
        f"{_TESTS}::test_killed_is_reported_when_nothing_goes_on_elsewhere[deaf-notes2]",
    ),
    Promise.KILLED_MEANS_DEAD.broken_if(
        "what could not be settled is called killed",
        _SETTLING["complete"].drop("outcome=ProcessOutcome.FAILED"),
        f"{_TESTS}::test_what_cannot_be_settled_is_not_called_killed",
    ),
    Promise.PROGRESS.broken_if(
        "settling that fails permanently is tried again",
        _SETTLING["_settle"].never("is_permanent"),
        "tests/integration/worker/wait/test_agent_looks.py::"
        "test_look_that_cannot_be_made_is_a_failure",
    ),
    Promise.KILLED_MEANS_DEAD.broken_if(
        "a trial that is cancelled while its process starts leaves processes behind",
        _TRIAL["_run_process"].replace("asyncio.shield(start)", "start"),
        "tests/integration/client/trial/test_trial.py::"
        "test_cancelled_while_its_process_starts_it_ends_what_the_process_has_started",
    ),
    Promise.SECRETS_STAY.broken_if(
        "the reason of a failure shows secrets",
        _SETTLING["complete"].replace("Masker(attempt.launch.masks).mask(reason)", "reason"),
        f"{_TESTS}::"
        "test_failure_says_why_and_whether_to_try_again[wrong-no such table: see ***-True]",
    ),
    Promise.SECRETS_STAY.broken_if(
        "the password of a data source is not masked",
        _RUNNER["_work"].replace("filter(None, passwords)", "()"),
        f"{_TESTS}::test_work_gets_all_it_needs_and_nothing_of_it_touches_the_disk",
    ),
    Promise.SECRETS_STAY.broken_if(
        "a request that holds secrets is written to the disk",
        _CHILD["_in_memory"].replace(
            "os.memfd_create('stdin', os.MFD_CLOEXEC)", "os.open('/tmp', os.O_RDWR | os.O_TMPFILE)"
        ),
        f"{_TESTS}::test_work_gets_all_it_needs_and_nothing_of_it_touches_the_disk",
    ),
    Promise.PROGRESS.broken_if(
        "a failure that would be the same is tried again",
        _ENDING["end"].never("signal is TaskSignal.FAIL"),
        f"{_TEST_DECIDE}::"
        "test_failure_that_would_be_the_same_is_not_retried_until_a_person_says_so",
    ),
    Promise.SENT_ONCE.broken_if(
        "what may have taken effect is run again when its worker is lost",
        _ENDING["_try_again"].replace("ended.task in draft.run.plan.once", "not ended.task"),
        f"{_TEST_DECIDE}::test_what_may_have_taken_effect_is_not_run_again_by_itself_after_a_loss",
    ),
    Promise.SENT_ONCE.broken_if(
        "what may have taken effect is run again when its process is killed",
        _SETTLING["complete"].replace(
            "once is not None and record.outcome is ProcessOutcome.FAILED", "not record.id"
        ),
        f"{_ONCE}::test_request_whose_process_is_killed_is_sent_again_if_that_does_no_harm[POST]",
    ),
    Promise.SENT_ONCE.broken_if(
        "a request leaves without a note",
        _FAILURES["sent"].drop("self._note(...)"),
        f"{_HTTP}::test_fate_outlives_the_process[False-None-True]",
    ),
    Promise.PROGRESS.broken_if(
        "the note of a request that the server has not begun stays",
        _FAILURES["answered"].drop("self._note(None)"),
        f"{_HTTP}::test_fate_outlives_the_process[False-429-False]",
    ),
    Promise.SENT_ONCE.broken_if(
        "statements are committed without a note",
        _RUN["_run"].never("commits_itself or not (self._in_transaction or planned.only_reads)"),
        f"{_TEST_RUNNING}::test_what_may_be_committed_is_noted_for_when_the_process_is_killed",
    ),
    Promise.SENT_ONCE.broken_if(
        "a transaction is committed without a note",
        _RUN["_commit"].drop("self._note_commit()"),
        f"{_TEST_RUNNING}::test_what_may_be_committed_is_noted_for_when_the_process_is_killed",
    ),
    Promise.SENT_ONCE.broken_if(
        "after a restart what may have taken effect is run again",
        _MAIN["report_leftovers"].replace(
            "of_earlier_life(...)", "ExitRecord.from_json(entry.record)"
        ),
        "tests/unit/worker/intake/test_leftover_results.py::"
        "test_what_may_have_taken_effect_is_not_done_again_after_a_restart"
        "[SIGNALLED-context0-True]",
    ),
)

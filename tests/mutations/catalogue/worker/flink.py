"""FLINK tasks: no two live jobs of one task, none forgotten, and nothing said in the clear."""

from tests.mutations.mutation import Mutation, Promise
from tests.mutations.place import Place

_RUN = Place("shoal.worker.types.flink.run")
_LEFTOVERS = Place("shoal.worker.types.flink.leftovers")
_NAMING = Place("shoal.worker.types.flink.names")
_CLUSTER = Place("shoal.worker.types.flink.cluster")
_PARAMS = Place("shoal.worker.types.flink.kind")
_TESTS = "tests/integration/worker/flink/test_contract.py"

MUTATIONS: tuple[Mutation, ...] = (
    Promise.ONE_LIVE_ATTEMPT.broken_if(
        "an earlier attempt's Flink job runs beside the next one's",
        _RUN["run"].never("work.attempt > 1"),
        f"{_TESTS}::test_earlier_attempts_jobs_end_before_anything_is_submitted",
    ),
    Promise.ONE_LIVE_ATTEMPT.broken_if(
        "an attempt that ended no earlier one's Flink job is settled",
        _RUN["run"].drop("work.attempt == 1"),
        f"{_TESTS}::test_attempt_that_cannot_end_an_earlier_ones_job_is_not_settled",
    ),
    Promise.KILLED_MEANS_DEAD.broken_if(
        "a program that is being started is forgotten",
        _LEFTOVERS["end"].drop("await _until_nothing_starts(...)"),
        f"{_TESTS}::test_settling_waits_for_a_program_that_is_being_started",
        f"{_TESTS}::test_killed_while_its_program_is_being_started",
    ),
    Promise.KILLED_MEANS_DEAD.broken_if(
        "a jar stays from which a program can still be started",
        _LEFTOVERS["end"].drop("await delete_jars(...)"),
        f"{_TESTS}::test_settling_leaves_newer_attempts_alone",
    ),
    Promise.ONE_LIVE_ATTEMPT.broken_if(
        "an old attempt ends the newer one's Flink job",
        _LEFTOVERS["_is_among"].drop("attempt <= up_to"),
        f"{_TESTS}::test_settling_leaves_newer_attempts_alone",
    ),
    Promise.KILLED_MEANS_DEAD.broken_if(
        "killed before Flink has confirmed the job's end",
        _RUN["_run"].drop("await end_job(...)"),
        f"{_TESTS}::test_killed_when_flink_has_confirmed_the_end",
    ),
    Promise.KILLED_MEANS_DEAD.broken_if(
        "the job of a program that failed behind it goes on",
        _RUN["_submit"].drop("await end(...)"),
        f"{_TESTS}::test_program_that_is_refused_leaves_neither_jar_nor_job",
    ),
    Promise.ONE_LIVE_ATTEMPT.broken_if(
        "all attempts submit under one job id",
        _NAMING["job_id"].replace("attempt", "1"),
        "tests/unit/worker/flink/test_naming.py::test_they_tell_the_attempt_of_their_own_task",
    ),
    Promise.SENT_ONCE.broken_if(
        "a Flink job resumes from a savepoint behind which it went on",
        _LEFTOVERS["savepoint_of"].replace("states.get(job) == 'FINISHED'", "job in states"),
        f"{_TESTS}::test_next_attempt_resumes_where_an_earlier_one_was_stopped",
    ),
    Promise.SECRETS_STAY.broken_if(
        "a Flink password is sent without TLS",
        _CLUSTER["connected"].never("source.password and (not _is_tls(source))"),
        f"{_TESTS}::test_password_is_not_sent_without_tls",
    ),
    Promise.TEXT_STAYS_TEXT.broken_if(
        "a task chooses the id or the files of its Flink job",
        _PARAMS["_of_the_job_alone"].never("not ALLOWED.fullmatch(key)"),
        "tests/unit/worker/flink/test_params.py::test_what_is_refused",
    ),
)

"""FLINK tasks: no two live jobs of one task, none forgotten, and nothing said in the clear."""

from tests.mutations.mutation import Mutation, Promise, mutation

_FLINK = "worker/shoal/worker/types/flink"
_TESTS = "tests/integration/worker/flink/test_contract.py"

MUTATIONS: tuple[Mutation, ...] = (
    mutation(
        "an earlier attempt's Flink job runs beside the next one's",
        Promise.ONE_LIVE_ATTEMPT,
        f"{_FLINK}/run.py",
        ("if work.attempt > 1:", "if False:"),
        (f"{_TESTS}::test_earlier_attempts_jobs_end_before_anything_is_submitted",),
    ),
    mutation(
        "an attempt that ended no earlier one's Flink job is settled",
        Promise.ONE_LIVE_ATTEMPT,
        f"{_FLINK}/run.py",
        ("if not has_begun and work.attempt == 1:", "if not has_begun:"),
        (f"{_TESTS}::test_attempt_that_cannot_end_an_earlier_ones_job_is_not_settled",),
    ),
    mutation(
        "a program that is being started is forgotten",
        Promise.KILLED_MEANS_DEAD,
        f"{_FLINK}/leftovers.py",
        ("    await _until_nothing_starts(cluster, params.main_class)\n", ""),
        (
            f"{_TESTS}::test_settling_waits_for_a_program_that_is_being_started",
            f"{_TESTS}::test_killed_while_its_program_is_being_started",
        ),
    ),
    mutation(
        "a jar stays from which a program can still be started",
        Promise.KILLED_MEANS_DEAD,
        f"{_FLINK}/leftovers.py",
        (
            "    await delete_jars(cluster, tag, up_to)\n    await _until",
            "    await _until",
        ),
        (f"{_TESTS}::test_settling_leaves_newer_attempts_alone",),
    ),
    mutation(
        "an old attempt ends the newer one's Flink job",
        Promise.ONE_LIVE_ATTEMPT,
        f"{_FLINK}/leftovers.py",
        ("attempt is not None and attempt <= up_to", "attempt is not None"),
        (f"{_TESTS}::test_settling_leaves_newer_attempts_alone",),
    ),
    mutation(
        "killed before Flink has confirmed the job's end",
        Promise.KILLED_MEANS_DEAD,
        f"{_FLINK}/run.py",
        (
            "            await end_job(cluster, job, work.params, work.log, None)\n",
            "            pass\n",
        ),
        (f"{_TESTS}::test_killed_when_flink_has_confirmed_the_end",),
    ),
    mutation(
        "the job of a program that failed behind it goes on",
        Promise.KILLED_MEANS_DEAD,
        f"{_FLINK}/run.py",
        (
            "        await end(cluster, work.tag, work.attempt, work.params, work.log)\n"
            "        work.settled()\n        raise\n    work.log",
            "        work.settled()\n        raise\n    work.log",
        ),
        (f"{_TESTS}::test_program_that_is_refused_leaves_neither_jar_nor_job",),
    ),
    mutation(
        "all attempts submit under one job id",
        Promise.ONE_LIVE_ATTEMPT,
        f"{_FLINK}/naming.py",
        ("{attempt:08x}", "{1:08x}"),
        ("tests/unit/worker/flink/test_naming.py::test_they_tell_the_attempt_of_their_own_task",),
    ),
    mutation(
        "a Flink job resumes from a savepoint behind which it went on",
        Promise.SENT_ONCE,
        f"{_FLINK}/leftovers.py",
        ('if states.get(job) == "FINISHED":', "if job in states:"),
        (f"{_TESTS}::test_next_attempt_resumes_where_an_earlier_one_was_stopped",),
    ),
    mutation(
        "a Flink password is sent without TLS",
        Promise.SECRETS_STAY,
        f"{_FLINK}/cluster.py",
        ("if source.password and not _is_tls(source):", "if False:"),
        (f"{_TESTS}::test_password_is_not_sent_without_tls",),
    ),
    mutation(
        "a task chooses the id or the files of its Flink job",
        Promise.TEXT_STAYS_TEXT,
        f"{_FLINK}/params.py",
        ("if not ALLOWED.fullmatch(key):", "if False:"),
        ("tests/unit/worker/flink/test_params.py::test_what_is_refused",),
    ),
)

"""SSH tasks: the host is the right one, and nothing is left on it."""

from tests.mutations.mutation import Mutation, Promise, mutation

_SSH = "worker/shoal/worker/types/ssh"
_TESTS = "tests/integration/worker/ssh/test_ssh.py"

MUTATIONS: tuple[Mutation, ...] = (
    mutation(
        "any host is signed in to",
        Promise.SECRETS_STAY,
        f"{_SSH}/host.py",
        ("known_hosts=([key], [], [])", "known_hosts=None"),
        (f"{_TESTS}::test_hosts_that_cannot_be_used",),
    ),
    mutation(
        "a killed script goes on at its host",
        Promise.KILLED_MEANS_DEAD,
        f"{_SSH}/run.py",
        (
            "    except asyncio.CancelledError:\n        await host.end(work.tag)\n",
            "    except asyncio.CancelledError:\n",
        ),
        (f"{_TESTS}::test_killed_with_all_that_it_has_started",),
    ),
    mutation(
        "what ignores SIGTERM goes on at its host",
        Promise.KILLED_MEANS_DEAD,
        f"{_SSH}/remote.py",
        ("&& s=KILL", "&& s=TERM"),
        (f"{_TESTS}::test_killed_with_all_that_it_has_started",),
    ),
    mutation(
        "an earlier attempt's script runs beside the next one's",
        Promise.ONE_LIVE_ATTEMPT,
        f"{_SSH}/run.py",
        ("            await host.end(work.tag)  # what an earlier attempt has left\n", ""),
        (f"{_TESTS}::test_no_two_attempts_run_at_once",),
    ),
    mutation(
        "values are code at the host",
        Promise.TEXT_STAYS_TEXT,
        f"{_SSH}/remote.py",
        ("{shlex.quote(value)}", "'{value}'"),
        (f"{_TESTS}::test_output_exit_code_and_outputs",),
    ),
)

"""SSH tasks: the host is the right one, and nothing is left on it."""

from tests.mutations.mutation import Mutation, Promise
from tests.mutations.place import Place

_HOST = Place("shoal.worker.types.ssh.host")
_RUN = Place("shoal.worker.types.ssh.run")
_REMOTE = Place("shoal.worker.types.ssh.remote")
_TESTS = "tests/integration/worker/ssh/test_ssh.py"

MUTATIONS: tuple[Mutation, ...] = (
    Promise.SECRETS_STAY.broken_if(
        "any host is signed in to",
        _HOST["_connected"].replace("([key], [], [])", "None"),
        f"{_TESTS}::test_hosts_that_cannot_be_used",
    ),
    Promise.KILLED_MEANS_DEAD.broken_if(
        "a killed script goes on at its host",
        _RUN["_run"].replace(
            "except asyncio.CancelledError:\n"
            "    await host.end(work.tag)\n"
            "    work.settled()\n"
            "    raise",
            "except asyncio.CancelledError:\n    work.settled()\n    raise",
        ),
        f"{_TESTS}::test_killed_with_all_that_it_has_started",
    ),
    Promise.KILLED_MEANS_DEAD.broken_if(
        "what ignores SIGTERM goes on at its host",
        _REMOTE.replace_text("s=KILL", "s=TERM"),
        f"{_TESTS}::test_killed_with_all_that_it_has_started",
    ),
    Promise.ONE_LIVE_ATTEMPT.broken_if(
        "an earlier attempt's script runs beside the next one's",
        _RUN["run"].drop("await host.end(work.tag)"),
        f"{_TESTS}::test_no_two_attempts_run_at_once",
    ),
    Promise.TEXT_STAYS_TEXT.broken_if(
        "values are code at the host",
        _REMOTE["__init__"].replace(
            "f'export {name}={shlex.quote(value)}\\n'", "f\"export {name}='{value}'\\n\""
        ),
        f"{_TESTS}::test_output_exit_code_and_outputs",
    ),
)

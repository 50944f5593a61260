"""SSH tasks: the host is the right one, and nothing is left on it."""

from tests.mutations.mutation import Mutation, Promise
from tests.mutations.place import Place

_HOST = Place("shoal.worker.types.ssh.host")
_RUN = Place("shoal.worker.types.ssh.run")
_REMOTE = Place("shoal.worker.types.ssh.remote")
_TESTS = "tests/integration/worker/ssh/test_ssh.py"
_ISOLATION = "tests/integration/worker/ssh/test_isolation.py"

MUTATIONS: tuple[Mutation, ...] = (
    Promise.SECRETS_STAY.broken_if(
        "any host is signed in to",
        _HOST["_connected"].replace("([key], [], [])", "None"),
        f"{_TESTS}::test_hosts_that_cannot_be_used",
    ),
    Promise.KILLED_MEANS_DEAD.broken_if(
        "a killed script goes on at its host",
        _RUN["_run"].replace(
            "except (asyncio.CancelledError, WorkFailed):\n"
            "    await host.end(work.tag)\n"
            "    work.settled()\n"
            "    raise",
            "except (asyncio.CancelledError, WorkFailed):\n    work.settled()\n    raise",
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
        _REMOTE["_assignments"].replace(
            "f'export {name}={shlex.quote(value)} 2>/dev/null'",
            "f\"export {name}='{value}' 2>/dev/null\"",
        ),
        f"{_TESTS}::test_output_exit_code_and_outputs",
    ),
    Promise.TEXT_STAYS_TEXT.broken_if(
        "parameters are variables of what removes the folder at the host",
        (
            _REMOTE.replace_text(
                '|| exit; { cat | $4 sh -c ". /dev/stdin" sh "$1" 2>&1; } 2>/dev/null; printf',
                '|| exit; d=$1 m=$2 n=$3; . /dev/stdin 2>&1; code=$?; set -- "$d" "$m" "$n"; '
                '(exit "$code"); printf',
            ),
            _REMOTE["__init__"].replace(
                '\'exec "$2" "$1/script" < /dev/null\'', '\'"$2" "$1/script" < /dev/null\''
            ),
        ),
        f"{_ISOLATION}::test_no_name_of_a_parameter_reaches_beyond_the_script",
    ),
    Promise.TEXT_STAYS_TEXT.broken_if(
        "a shell works out the value of a parameter",
        _REMOTE["_assignments"].replace(
            'f"""if (command export {name}=\'?\'; [ "${name}" = \'?\' ]) 2>/dev/null; then '
            '{export}"""',
            "f'if :; then {export}'",
        ),
        f"{_ISOLATION}::test_no_name_of_a_parameter_reaches_beyond_the_script",
    ),
    Promise.TEXT_STAYS_TEXT.broken_if(
        "a script ends what waits for it with its own group of processes",
        _REMOTE.replace_text('>/dev/null && echo setsid)"; mkdir', '>/dev/null)"; mkdir'),
        f"{_ISOLATION}::test_whatever_a_script_does_to_its_shell_its_own_code_arrives",
    ),
    Promise.PROGRESS.broken_if(
        "an attempt lasts as long as anything holds its output open",
        _HOST["data_received"].drop("if None not in self.answers:\n    ..."),
        f"{_ISOLATION}::test_attempt_ends_with_its_script_though_its_output_is_held_open",
    ),
)

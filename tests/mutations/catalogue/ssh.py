"""SSH tasks: the host is the right one, and nothing is left on it."""

from tests.mutations.mutation import Edit, Mutation, Promise, mutation

_SSH = "worker/shoal/worker/types/ssh"
_TESTS = "tests/integration/worker/ssh/test_ssh.py"
_ISOLATION = "tests/integration/worker/ssh/test_isolation.py"

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
            "    except (asyncio.CancelledError, WorkFailed):\n        await host.end(work.tag)\n",
            "    except (asyncio.CancelledError, WorkFailed):\n",
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
    Mutation(
        "parameters are variables of what removes the folder at the host",
        Promise.TEXT_STAYS_TEXT,
        (
            Edit(
                f"{_SSH}/remote.py",
                """'{ cat | $4 sh -c ". /dev/stdin" sh "$1" 2>&1; } 2>/dev/null; '""",
                """'d=$1 m=$2 n=$3; . /dev/stdin 2>&1; code=$?; '
    'set -- "$d" "$m" "$n"; (exit "$code"); '""",
            ),
            Edit(f"{_SSH}/remote.py", """'exec "$2" "$1/script\"""", """'"$2" "$1/script\""""),
        ),
        (f"{_ISOLATION}::test_no_name_of_a_parameter_reaches_beyond_the_script",),
    ),
    mutation(
        "a shell works out the value of a parameter",
        Promise.TEXT_STAYS_TEXT,
        f"{_SSH}/remote.py",
        (
            """if (command export {name}='?'; [ \\"${name}\\" = '?' ]) 2>/dev/null; then""",
            """if :; then""",
        ),
        (f"{_ISOLATION}::test_no_name_of_a_parameter_reaches_beyond_the_script",),
    ),
    mutation(
        "a script ends what waits for it with its own group of processes",
        Promise.TEXT_STAYS_TEXT,
        f"{_SSH}/remote.py",
        (" && echo setsid", ""),
        (f"{_ISOLATION}::test_whatever_a_script_does_to_its_shell_its_own_code_arrives",),
    ),
    mutation(
        "an attempt lasts as long as anything holds its output open",
        Promise.PROGRESS,
        f"{_SSH}/host.py",
        ("        if None not in self.answers:\n            self._resolve()\n", ""),
        (f"{_ISOLATION}::test_attempt_ends_with_its_script_though_its_output_is_held_open",),
    ),
)

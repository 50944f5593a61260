"""What the processes of a cluster write to their log files."""

import subprocess
import sys

from tests.support.waiting import START_S

SET_UP = (
    "import structlog\n"
    "from shoal.client.local.process import configure_logging\n"
    "configure_logging('info')\n"
    "log = structlog.get_logger()\n"
)


def lines_of(program: str) -> list[str]:
    """Run ``program`` after the set-up, in a process of its own; return what it logs."""
    done = subprocess.run(
        [sys.executable, "-c", SET_UP + program], capture_output=True, text=True, timeout=START_S
    )
    assert done.returncode == 0, done.stderr
    return done.stderr.splitlines()


def test_a_line_is_readable_and_its_fields_are_told_apart() -> None:
    program = "log.info('task ended', took_s=0.5, reason='exit code 3', name='x', what='a\\nb=c')\n"
    program += "log.debug('not wanted')\nlog.warning('done')\n"
    ended, done = (line.split(" ", maxsplit=1) for line in lines_of(program))
    assert ended[0].endswith("Z")
    fields = "name=x reason='exit code 3' took_s=0.5 what='a\\nb=c'"
    assert ended[1] == f"[info     ] {'task ended':<30} {fields}"
    assert done[1] == "[warning  ] done"


def test_an_error_brings_its_traceback_but_no_values() -> None:
    program = "def fail(secret): raise ValueError('broken')\n"
    program += "try: fail('hun' + 'ter2')\nexcept ValueError: log.exception('it failed', n=1)\n"
    first, *traceback = lines_of(program)
    assert first.endswith("it failed                      n=1")
    assert traceback[0] == "Traceback (most recent call last):"
    assert traceback[-1] == "ValueError: broken"
    assert "hunter2" not in "\n".join(traceback)

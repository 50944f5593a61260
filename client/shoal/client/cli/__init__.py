"""The ``shoal`` command line.

One module for each subject, each with ``register(app)``, imported when one of its commands is
asked for (the table in ``app``). Modules import only typer at their top: ``shoal --help`` must not
load HTTP, YAML or a server's libraries.
"""

import sys
from collections.abc import Sequence

from shoal.core.errors import ShoalError


def main() -> None:
    """Entry point of the program; never returns."""
    sys.exit(run(sys.argv[1:]))


def run(arguments: Sequence[str]) -> int:
    """Carry out a command line; return the exit status.

    Errors that Shoal raises on purpose are printed in words on standard error.
    """
    from shoal.client.cli.exits import ExitStatus, exit_status

    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")  # a terminal without ✓ is no reason to fail
    try:
        from shoal.client.cli.app import program

        program()(args=list(arguments), prog_name="shoal")
    except ShoalError as error:
        from shoal.client.cli.terminal.output import tell_error

        tell_error(error)
        return exit_status(error)
    except KeyboardInterrupt:
        return ExitStatus.INTERRUPTED
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else ExitStatus.OK if end.code is None else 1
    return ExitStatus.OK

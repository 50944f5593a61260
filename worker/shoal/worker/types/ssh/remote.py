"""The programs of the other side, in the language of ``sh``, and their answers.

Two processes share the work, so that parameters and the script cannot reach what watches them.
The *watcher* makes a folder, waits for the script, reports its exit code and outputs, and removes
the folder. The *starter* is a child in its own session: it writes the script to the folder, sets
the variables and becomes the interpreter. Parameters are assigned in the starter alone. Both keep
their own values in positional parameters, which are in no environment, so a script sees none of
them, even if the host's environment has a variable of any name.

Everything that a script starts inherits ``SHOAL_REMOTE_TAG``. Linux shows the environment of a
process to its user, so the processes of a task are found without a number that could have been
reused, and after their parents have ended. A process of another user is not found.

The login shell of the user reads the command lines and may be a ``csh`` or ``fish``. So they are
one line in single quotes, without backslashes and exclamation marks, which all of them pass on
unchanged.
"""

import secrets
import shlex
from collections.abc import Iterator, Mapping

TAG = "SHOAL_REMOTE_TAG"
#: How many bytes of outputs a script may write. One more is sent, by which an excess is noticed.
MOST_OUTPUT = 8 * 1024 * 1024
#: How long processes may take to end after SIGTERM, in tenths of a second. SIGKILL follows.
_PATIENCE = 20
_GIVE_UP = 80

#: Exit codes of the programs here.
NO_PROC, STILL_THERE = 97, 98

# $1: the name of the folder. $2, $3: two halves of the mark, so that no list of processes has it
# as a whole. The mark stands before and after each of the two answers: the exit code on standard
# output, and the outputs on standard error, to which no process of the script can write.
# `setsid` keeps a `kill 0` of the script from the watcher. The messages of a shell about a child
# that was killed are dropped.
_WATCHER = (
    'set -- "${TMPDIR:-/tmp}/$1" "$2" "$3" "$(command -v setsid >/dev/null && echo setsid)"; '
    'mkdir -m 700 -- "$1" || exit; '
    '{ cat | $4 sh -c ". /dev/stdin" sh "$1" 2>&1; } 2>/dev/null; '
    'printf "@%s%s%s@%s%s" "$2" "$3" "$?" "$2" "$3"; '
    'printf "@%s%s" "$2" "$3" >&2; '
    f'if [ -f "$1/output" ]; then head -c {MOST_OUTPUT + 1} "$1/output" >&2 2>/dev/null; fi; '
    'rm -rf -- "$1"; '
    'printf "@%s%s" "$2" "$3" >&2'
)

# A process may start another between the look and the signal, so it is looked for until none is
# there. The environment of this program has no tag.
_END = (
    "t=$1 n=0 s=TERM; "
    f"[ -r /proc/self/environ ] || exit {NO_PROC}; "
    f'while p=$(grep -ls "{TAG}=$t" /proc/[0-9]*/environ | tr -c 0-9 " "); [ -n "$p" ]; do '
    "[ $n = 0 ] && s=TERM || s=0; "
    f"[ $n -ge {_PATIENCE} ] && s=KILL; "
    f"[ $n -ge {_GIVE_UP} ] && {{ echo $p; exit {STILL_THERE}; }}; "
    "kill -s $s $p 2>/dev/null; n=$((n + 1)); sleep 0.1; done; "
    'rm -rf -- "${TMPDIR:-/tmp}/$t".*'
)


def end(tag: str) -> str:
    """Return the command that ends what carries the tag. Exit code 0: nothing is left.

    STILL_THERE: some processes do not end, their numbers are written. NO_PROC: the host does not
    tell.
    """
    return f"sh -c {shlex.quote(_END)} sh {tag}"


class RemoteScript:
    """A script and its variables as the other side reads them; no command line there has them.

    ``mark`` encloses the answers of the watcher.
    """

    def __init__(self, text: str, interpreter: str, variables: Mapping[str, str]) -> None:
        self._folder, *self._halves = (secrets.token_hex(8) for _ in range(3))
        self.mark = f"@{''.join(self._halves)}".encode()
        # Read to the end before any of it runs: a connection that breaks here starts nothing.
        # The shell takes the text between the two lines as it is.
        end_line = f"end-{secrets.token_hex(16)}"
        self.program = "\n".join(
            (
                "{",
                f'set -- "$1" "$(command -v {interpreter})"',
                f'[ -n "$2" ] || {{ echo "{interpreter}: not found on the PATH"; exit 127; }}',
                f"(umask 077 && cat > \"$1/script\") <<'{end_line}' || exit 126",
                text,
                end_line,
                *_assignments(variables),
                'export SHOAL_OUTPUT="$1/output"',
                'exec "$2" "$1/script" < /dev/null',
                "}",
                "",
            )
        ).encode()

    def command(self, tag: str) -> str:
        """Return the command that runs ``program``, which it reads from its standard input."""
        arguments = " ".join((f"{tag}.{self._folder}", *self._halves))
        return f"exec env {TAG}={tag} sh -c {shlex.quote(_WATCHER)} sh {arguments}"


def _assignments(variables: Mapping[str, str]) -> Iterator[str]:
    """Yield what sets the variables.

    Shells treat some names in their own way: they refuse a value, or end, or work it out as
    arithmetic, which runs commands in it (``OPTIND`` in bash). Which names these are depends on
    the shell, so it is asked: a name that does not take a harmless text as it is, is left out.
    """
    for name, value in variables.items():
        export = f"export {name}={shlex.quote(value)} 2>/dev/null"
        if name.startswith("SHOAL_"):
            yield export
            continue
        yield f"if (command export {name}='?'; [ \"${name}\" = '?' ]) 2>/dev/null; then {export}"
        left_out = f"the shell of this host uses the variable {name} itself"
        yield f'else echo "shoal: {left_out}; read SHOAL_PARAM_{name.upper()}"; fi'

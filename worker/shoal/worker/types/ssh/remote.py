"""The programs of the other side, in the language of ``sh``, and what they say.

Everything that a script starts inherits ``SHOAL_REMOTE_TAG``. Linux shows the environment of a
process to its user, so what is left of a task is found without a number that could have been
reused, and when its parents are gone. A process that runs as another user is not found.
"""

import secrets
import shlex
from collections.abc import Mapping

TAG = "SHOAL_REMOTE_TAG"
#: How long what is ended may take after SIGTERM, in tenths of a second. SIGKILL follows.
_PATIENCE = 20
_GIVE_UP = 80

#: Exit codes of the programs here.
NO_PROC, STILL_THERE = 97, 98

_START = """umask 077
d=$(mktemp -d "${TMPDIR:-/tmp}/$SHOAL_REMOTE_TAG.XXXXXXXX") && cat > "$d/main" && . "$d/main"
"""

# A process may start another between the look and the signal, so it is looked for until none is
# there. The environment of this program has no tag.
_END = """t=$1 n=0 s=TERM
[ -r /proc/self/environ ] || exit 97
while p=$(grep -ls "SHOAL_REMOTE_TAG=$t" /proc/[0-9]*/environ | tr -cd '0-9\\n'); [ -n "$p" ]; do
    [ $n = 0 ] && s=TERM || s=0
    [ $n -ge PATIENCE ] && s=KILL
    [ $n -ge GIVE_UP ] && { echo $p; exit 98; }
    kill -s $s $p 2>/dev/null
    n=$((n + 1))
    sleep 0.1
done
rm -rf "${TMPDIR:-/tmp}/$t".*
"""


def start(tag: str) -> str:
    """Return the command that runs the program it reads from its standard input."""
    return f"env {TAG}={tag} sh -c {shlex.quote(_START)}"


def end(tag: str) -> str:
    """Return the command that ends what carries the tag. Exit code 0: nothing is left.

    STILL_THERE: some processes do not end, their numbers are written. NO_PROC: the host does not
    tell.
    """
    program = _END.replace("PATIENCE", str(_PATIENCE)).replace("GIVE_UP", str(_GIVE_UP))
    return f"sh -c {shlex.quote(program)} sh {tag}"


class Script:
    """A script as the other side reads it; nothing of it is on a command line there.

    Behind its output stands a line that nobody else can write: ``mark`` and the exit code. Behind
    that stand its outputs.
    """

    def __init__(self, text: str, interpreter: str, variables: Mapping[str, str]) -> None:
        nonce = secrets.token_hex(16)
        self.mark = f"shoal-{nonce}"
        exports = "".join(
            f"export {name}={shlex.quote(value)}\n" for name, value in variables.items()
        )
        # The shell takes the text between the two lines as it is.
        self.program = (
            f'{exports}export SHOAL_OUTPUT="$d/output"\n'
            f"cat > \"$d/script\" <<'end-{nonce}'\n{text}\nend-{nonce}\n"
            f'{interpreter} "$d/script" < /dev/null 2>&1\n'
            f"code=$?\nprintf '\\n%s %s\\n' {self.mark} \"$code\"\n"
            'cat "$d/output" 2>/dev/null\nrm -rf "$d"\n'
        )

"""Programs of the administrator: arguments and JSON on standard input, never a shell."""

import json
import os
from pathlib import Path

from pydantic import Field, StrictStr

from shoal.core.alerts.channels import Channel, ChannelFailed, Way
from shoal.core.alerts.messages.message import AlertMessage
from shoal.core.definition.fields import Strict
from shoal.runtime.programs import run_program

_SHOWN_OUTPUT = 500  # characters
_ENVIRONMENT = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}


class ScriptOptions(Strict):
    """Which program, and what it is given before the subject."""

    name: StrictStr = Field(
        pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}$",
        description="A file of the folder that the administrator has set (alert setting scripts).",
    )
    arguments: tuple[StrictStr, ...] = Field(
        default=(), max_length=20, description="Before kind, severity, project and subject."
    )


class Script(Channel[ScriptOptions]):
    """Runs ``NAME [ARGUMENTS] KIND SEVERITY PROJECT SUBJECT``; facts are on standard input.

    Its environment is PATH alone. Status 0 is a success, 75 (temporary failure) and death by a
    signal may pass, any other status will not.
    """

    Options = ScriptOptions

    async def send(self, message: AlertMessage, options: ScriptOptions, way: Way) -> str:
        """Run the program."""
        program = _program(way.settings.get("scripts", ""), options.name)
        # What people or programs have named must not be taken for an option.
        subject = message.subject.replace("\0", " ")
        given = [*options.arguments, message.kind, message.severity, message.project, subject]
        facts = json.dumps(message.facts, ensure_ascii=False).encode()
        try:
            done = await run_program(
                [program, *given], stdin=facts, env=_ENVIRONMENT, cwd=program.parent
            )
        except (OSError, ValueError) as error:
            raise ChannelFailed(f"{program} cannot be run: {error}", may_pass=False) from error
        text = " ".join(f"{done.output} {done.errors}".split())[:_SHOWN_OUTPUT]
        code = done.code
        if code != 0:
            may_pass = code < 0 or code == os.EX_TEMPFAIL
            raise ChannelFailed(f"{options.name} ended with {code}: {text}", may_pass=may_pass)
        return text


def _program(folder: str, name: str) -> Path:
    """Return the path of a program that is the administrator's. Raises ChannelFailed."""
    if not folder:
        raise ChannelFailed(
            "no program may run: the administrator has set no folder (alert setting scripts)",
            may_pass=False,
        )
    path = Path(folder) / name
    try:
        found = path.resolve(strict=True)
    except OSError as error:
        raise ChannelFailed(f"there is no {path}: {error.strerror}", may_pass=False) from error
    if found.parent != Path(folder).resolve() or not found.is_file():
        raise ChannelFailed(f"{path} leads out of its folder", may_pass=False)
    return found

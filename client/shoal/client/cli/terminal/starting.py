"""Options of commands that start runs: parameters and priority."""

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Literal, TypeAlias, cast

import typer

PriorityName: TypeAlias = Literal["HIGHEST", "HIGH", "MEDIUM", "LOW", "LOWEST"]

Parameters = Annotated[
    list[str] | None,
    typer.Option("-p", "--parameter", metavar="KEY=VALUE", help="A parameter; repeatable."),
]


def parse_parameters(given: Sequence[str] | None) -> dict[str, str]:
    """Return KEY=VALUE texts as a mapping. Raises BadParameter."""
    found: dict[str, str] = {}
    for text in given or ():
        key, equals, value = text.partition("=")
        if not equals or not key:
            raise typer.BadParameter(f"{text!r} is not KEY=VALUE", param_hint="-p")
        if key in found:
            raise typer.BadParameter(f"{key} is given twice", param_hint="-p")
        found[key] = value
    return found


def parse_priority(text: str | None) -> "PriorityName | None":
    """Return the name of a priority given as name or number. Raises BadParameter."""
    if text is None:
        return None
    from shoal.core.definition.fields import Priority

    try:
        return cast("PriorityName", Priority.read(int(text) if text.isdecimal() else text).name)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--priority") from None


def require_logical_time(moment: datetime, option: str) -> None:
    """Return if a run can be for an aware ``moment``. Raises BadParameter."""
    from shoal.core.timing.logical_time import LogicalTimeOutOfRange, logical_time

    try:
        logical_time(moment)
    except LogicalTimeOutOfRange as error:
        raise typer.BadParameter(str(error), param_hint=option) from None

"""Options of commands that list the newest of something."""

from collections.abc import Sequence
from datetime import UTC, datetime
from enum import Enum
from typing import Annotated, Any

import typer

States = Annotated[
    list[str] | None,
    typer.Option(metavar="STATE", help="Only in this state, such as RUNNING; repeatable."),
]
Limit = Annotated[int, typer.Option("--limit", "-n", min=1, help="How many at most.")]

MOST_OF_A_PAGE = 500  # what the API gives at a time


def read_states(given: Sequence[str] | None, known: type[Enum]) -> list[Any]:
    """Return the names of states as the API has them: literals. Raises BadParameter."""
    states = [text.upper() for text in given or ()]
    for state in states:
        if state not in known.__members__:
            names = ", ".join(known.__members__)
            raise typer.BadParameter(
                f"{state} is not a state; there are {names}", param_hint="--state"
            )
    return states


def page_of(limit: int) -> int:
    """Return how many to fetch at a time for ``limit`` in all."""
    return min(limit, MOST_OF_A_PAGE)


def in_utc(moment: datetime | None) -> datetime | None:
    """Return a time of an option, which is in UTC unless it says otherwise."""
    return None if moment is None else moment.replace(tzinfo=moment.tzinfo or UTC)

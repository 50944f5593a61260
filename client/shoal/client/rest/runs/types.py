"""What the API answers about many runs, as typed dictionaries."""

from typing import TypedDict


class CountJson(TypedDict):
    """A number; with ``is_more`` there are at least so many."""

    count: int
    is_more: bool


class CountsJson(TypedDict):
    """How many there are, in all and by state."""

    total: CountJson
    states: dict[str, CountJson]

"""Pages of ids; and those of what was read as a whole and put into an order that no index has."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

#: What the last item of a page is sorted by, and its id.
Position: TypeAlias = tuple[Any, int]


@dataclass(frozen=True)
class RankedPage:
    """Ids in the order of a list, and the position behind which it goes on; None: nowhere."""

    ids: Sequence[int]
    next: Position | None


def page_of_ranked(
    ranked: Sequence[Position], is_rising: bool, after: Position | None, limit: int
) -> RankedPage:
    """Return a page of what has ranks and ids. What has no rank comes last."""
    known = sorted((one for one in ranked if one[0] is not None), reverse=not is_rising)
    unknown = sorted((one for one in ranked if one[0] is None), key=_id, reverse=not is_rising)
    rest = [one for one in [*known, *unknown] if after is None or _is_behind(one, after, is_rising)]
    page = rest[:limit]
    return RankedPage([one[1] for one in page], page[-1] if len(rest) > limit else None)


def _id(one: tuple[Any, int]) -> int:
    return one[1]


def _is_behind(one: Position, after: Position, is_rising: bool) -> bool:
    (value, row_id), (last, last_id) = one, after
    if (value is None) is not (last is None):
        return value is None
    if value is None or value == last:
        return row_id > last_id if is_rising else row_id < last_id
    return bool(value > last if is_rising else value < last)

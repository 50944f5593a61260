"""What the masters say of themselves and their databases, as text."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from shoal.coordination.cluster.membership import MemberInfo


def database_trouble(masters: Mapping[str, MemberInfo], master_id: str) -> str | None:
    """Return what is wrong between a master and the database; None if it is answered.

    Members' data can be anything, and an older version has nothing of this.
    """
    said = _said(masters[master_id])
    if said.get("answers") is not False:
        return None
    text = f"the database does not answer since {_time(said.get('since'))}"
    if said.get("shares") is not False:
        return f"{text}; it keeps its partitions"
    others = sorted(
        other.id
        for other in masters.values()
        if other.id != master_id and _said(other).get("shares") is True
    )
    return f"{text}; its partitions were given to {', '.join(others) or 'nobody'}"


def troubles(masters: Mapping[str, MemberInfo]) -> list[str]:
    """Return a line for each master whose database does not answer."""
    found = ((master_id, database_trouble(masters, master_id)) for master_id in sorted(masters))
    return [f"master {master_id}: {trouble}" for master_id, trouble in found if trouble]


def given_up(master: MemberInfo) -> str | None:
    """Return how often a master has given up partitions that the database refused it."""
    said = master.data.get("given_up")
    if not isinstance(said, Mapping) or not isinstance(times := said.get("times"), int):
        return None
    return (
        f"has given partitions up because the database had another owner for them (times: {times}, "
        f"last at {_time(said.get('at'))})"
    )


def _said(master: MemberInfo) -> Mapping[str, Any]:
    said = master.data.get("database")
    return said if isinstance(said, Mapping) else {}


def _time(value: Any) -> str:
    try:
        return f"{datetime.fromisoformat(value).astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"
    except (TypeError, ValueError):
        return "an unknown time"

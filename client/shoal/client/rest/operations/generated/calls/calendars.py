"""What is sent for each operation about calendars.

Made from ``docs/openapi.json`` by ``make contract``; not for editing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from shoal.client.rest.operations.call import Call, part

if TYPE_CHECKING:
    from shoal.client.rest.operations.generated import types


def delete_calendar(
    project: str, name: str, *, if_match: str | None = None, if_none_match: str | None = None
) -> Call[None]:
    """Delete a calendar.

    Refused while a schedule names it.
    """
    return Call(
        "DELETE",
        f"/projects/{part(str(project))}/calendars/{part(str(name))}",
        headers={"if-match": if_match, "if-none-match": if_none_match},
    )


def get_calendar(project: str, name: str) -> Call[types.CalendarOut]:
    """Show a calendar.

    One calendar with its days.
    """
    return Call("GET", f"/projects/{part(str(project))}/calendars/{part(str(name))}")


def list_calendars(
    project: str, *, limit: int | None = None, cursor: str | None = None
) -> Call[types.CalendarPage]:
    """List calendars.

    The calendars of a project by name.
    """
    return Call(
        "GET", f"/projects/{part(str(project))}/calendars", query={"limit": limit, "cursor": cursor}
    )


def put_calendar(
    project: str,
    name: str,
    body: types.CalendarIn,
    *,
    if_match: str | None = None,
    if_none_match: str | None = None,
) -> Call[types.CalendarOut]:
    """Make or change a calendar.

    Replaces its days.

    A fire time that is planned already does not fire if its day is left out now.
    """
    return Call(
        "PUT",
        f"/projects/{part(str(project))}/calendars/{part(str(name))}",
        headers={"if-match": if_match, "if-none-match": if_none_match},
        body=body,
    )

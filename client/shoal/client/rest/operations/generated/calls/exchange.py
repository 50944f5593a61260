"""What is sent for each operation about exchange.

Made from ``docs/openapi.json`` by ``make contract``; not for editing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from shoal.client.rest.operations.call import Call, part

if TYPE_CHECKING:
    from shoal.client.rest.operations.generated import types


def export_project(project: str, *, name: Sequence[str] | None = None) -> Call[types.ExportOut]:
    """Export workflows.

    The newest definitions as YAML, with the calendars and concurrency groups that they name.

    Secrets, passwords and runs are not part of it. Nothing says which project it was.
    """
    return Call("GET", f"/projects/{part(str(project))}/export", query={"name": name})


def import_project(
    project: str, body: types.ImportIn, *, dry_run: bool | None = None
) -> Call[types.ImportOut]:
    """Import workflows.

    Stores all documents of a text, or none: workflows, calendars and concurrency groups.

    What has the same name is changed, workflows by a new version. With `dry_run` the answer has
    the reasons of what is refused; without, they are the errors of a 422.
    """
    return Call(
        "POST", f"/projects/{part(str(project))}/import", query={"dry_run": dry_run}, body=body
    )

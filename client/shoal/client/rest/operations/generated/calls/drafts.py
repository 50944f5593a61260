"""What is sent for each operation about drafts.

Made from ``docs/openapi.json`` by ``make contract``; not for editing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from shoal.client.rest.operations.call import Call, part

if TYPE_CHECKING:
    from shoal.client.rest.operations.generated import types


def delete_draft(
    project: str, name: str, *, if_match: str | None = None, if_none_match: str | None = None
) -> Call[None]:
    """Discard a draft.

    Deletes the caller's draft; what is published stays.
    """
    return Call(
        "DELETE",
        f"/projects/{part(str(project))}/workflows/{part(str(name))}/draft",
        headers={"if-match": if_match, "if-none-match": if_none_match},
    )


def get_draft(project: str, name: str, *, editor: str | None = None) -> Call[types.DraftDetail]:
    """Show a draft.

    The draft of a workflow, of the caller or of another user.
    """
    return Call(
        "GET",
        f"/projects/{part(str(project))}/workflows/{part(str(name))}/draft",
        query={"editor": editor},
    )


def list_drafts(
    project: str, *, name: str | None = None, limit: int | None = None, cursor: str | None = None
) -> Call[types.DraftPage]:
    """List drafts.

    Who works on what, by workflow and editor.
    """
    return Call(
        "GET",
        f"/projects/{part(str(project))}/drafts",
        query={"name": name, "limit": limit, "cursor": cursor},
    )


def plan_workflow(project: str, name: str, body: types.DefinitionIn) -> Call[types.WorkflowPlanOut]:
    """Show what publishing would do.

    What would differ, when schedules would fire, what names the workflow, what runs now.

    It is published and taken back again: so what the answer says is what would happen.
    """
    return Call(
        "POST",
        f"/projects/{part(str(project))}/workflows/{part(str(name))}/plan",
        body=body,
        repeat=True,
    )


def publish_draft(
    project: str, name: str, *, if_match: str | None = None, if_none_match: str | None = None
) -> Call[types.PublishOut]:
    """Publish a draft.

    Makes the caller's draft the newest version, and deletes the draft.

    Refused (412) if a version was published since the draft's `base_version`: `current` is what is
    published now, `changes` what was changed. Take it in, save the draft with the new
    `base_version`, and publish again.
    """
    return Call(
        "POST",
        f"/projects/{part(str(project))}/workflows/{part(str(name))}/draft/publish",
        headers={"if-match": if_match, "if-none-match": if_none_match},
    )


def put_draft(
    project: str,
    name: str,
    body: types.DraftIn,
    *,
    if_match: str | None = None,
    if_none_match: str | None = None,
) -> Call[types.DraftDetail]:
    """Save a draft.

    Keeps the caller's draft as it is typed, also if it is not a definition yet.

    Nothing is checked, published or run. One that is there needs `If-Match`: it may be open in
    another window.
    """
    return Call(
        "PUT",
        f"/projects/{part(str(project))}/workflows/{part(str(name))}/draft",
        headers={"if-match": if_match, "if-none-match": if_none_match},
        body=body,
    )


def validate_workflow(
    project: str, name: str, body: types.DefinitionIn
) -> Call[types.ValidationOut]:
    """Check a definition.

    Says all that is wrong with a definition, each with its field and the line of the text.

    By itself, and for what it names: calendars, groups, environments, other projects. Nothing is
    stored.
    """
    return Call(
        "POST",
        f"/projects/{part(str(project))}/workflows/{part(str(name))}/validate",
        body=body,
        repeat=True,
    )

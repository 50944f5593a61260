"""What is sent for each operation about alerts.

Made from ``docs/openapi.json`` by ``make contract``; not for editing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from shoal.client.rest.operations.call import Call, part

if TYPE_CHECKING:
    from shoal.client.rest.operations.generated import types


def acknowledge_alert(project: str, alert_id: int) -> Call[types.AlertOut]:
    """Acknowledge an alert.

    Acknowledge an alert: no further reminders are sent. The first acknowledgement is kept.
    """
    return Call(
        "POST",
        f"/projects/{part(str(project))}/alerts/{part(str(alert_id))}/acknowledgement",
        repeat=True,
    )


def create_alert_silence(project: str, body: types.AlertSilenceIn) -> Call[types.AlertSilenceOut]:
    """Silence alerts.

    Alerts it covers send no notifications; those still open when it ends send them then.
    """
    return Call("POST", f"/projects/{part(str(project))}/alert-silences", body=body)


def delete_alert_channel(
    project: str, name: str, *, if_match: str | None = None, if_none_match: str | None = None
) -> Call[None]:
    """Delete a channel of alerts.

    Messages for it that wait fail.
    """
    return Call(
        "DELETE",
        f"/projects/{part(str(project))}/alert-channels/{part(str(name))}",
        headers={"if-match": if_match, "if-none-match": if_none_match},
    )


def delete_alert_receiver(
    project: str, name: str, *, if_match: str | None = None, if_none_match: str | None = None
) -> Call[None]:
    """Delete a receiver of alerts.

    Rules that name it tell the others they name.
    """
    return Call(
        "DELETE",
        f"/projects/{part(str(project))}/alert-receivers/{part(str(name))}",
        headers={"if-match": if_match, "if-none-match": if_none_match},
    )


def delete_alert_rule(
    project: str, name: str, *, if_match: str | None = None, if_none_match: str | None = None
) -> Call[None]:
    """Delete a rule of alerts.

    Its alerts stay in the history; no further notifications are sent for them.
    """
    return Call(
        "DELETE",
        f"/projects/{part(str(project))}/alert-rules/{part(str(name))}",
        headers={"if-match": if_match, "if-none-match": if_none_match},
    )


def end_alert_silence(project: str, silence_id: int) -> Call[None]:
    """End a silence.

    Alerts that are still open send their notifications at once.
    """
    return Call("DELETE", f"/projects/{part(str(project))}/alert-silences/{part(str(silence_id))}")


def get_alert(project: str, alert_id: int) -> Call[types.AlertDetail]:
    """Show an alert.

    An alert, and who was notified of it, or why not.
    """
    return Call("GET", f"/projects/{part(str(project))}/alerts/{part(str(alert_id))}")


def get_alert_channel(project: str, name: str) -> Call[types.AlertChannelOut]:
    """Show a channel of alerts.

    One channel.
    """
    return Call("GET", f"/projects/{part(str(project))}/alert-channels/{part(str(name))}")


def get_alert_delivery(project: str, delivery_id: int) -> Call[types.AlertDeliveryDetail]:
    """Show a message about alerts.

    A message with every attempt to send it.
    """
    return Call("GET", f"/projects/{part(str(project))}/alert-deliveries/{part(str(delivery_id))}")


def get_alert_receiver(project: str, name: str) -> Call[types.AlertReceiverOut]:
    """Show a receiver of alerts.

    One receiver.
    """
    return Call("GET", f"/projects/{part(str(project))}/alert-receivers/{part(str(name))}")


def get_alert_rule(project: str, name: str) -> Call[types.AlertRuleOut]:
    """Show a rule of alerts.

    One rule.
    """
    return Call("GET", f"/projects/{part(str(project))}/alert-rules/{part(str(name))}")


def list_alert_channel_kinds(
    *, limit: int | None = None, cursor: str | None = None
) -> Call[types.AlertChannelKindPage]:
    """List kinds of channels.

    The kinds that are installed with the API, with the schema of their options.
    """
    return Call("GET", "/alert-channel-kinds", query={"limit": limit, "cursor": cursor})


def list_alert_channels(
    project: str, *, limit: int | None = None, cursor: str | None = None
) -> Call[types.AlertChannelPage]:
    """List channels of alerts.

    The channels of a project by name.
    """
    return Call(
        "GET",
        f"/projects/{part(str(project))}/alert-channels",
        query={"limit": limit, "cursor": cursor},
    )


def list_alert_deliveries(
    project: str,
    *,
    state: Sequence[types.DeliveryState] | None = None,
    channel: str | None = None,
    limit: int | None = None,
    cursor: str | None = None,
) -> Call[types.AlertDeliveryPage]:
    """List messages about alerts.

    The messages of a project, newest first.
    """
    return Call(
        "GET",
        f"/projects/{part(str(project))}/alert-deliveries",
        query={"state": state, "channel": channel, "limit": limit, "cursor": cursor},
    )


def list_alert_explanations(
    project: str,
    *,
    instance_id: int | None = None,
    event_id: int | None = None,
    limit: int | None = None,
    cursor: str | None = None,
) -> Call[types.AlertExplanationPage]:
    """Explain why notifications were sent or not.

    What each rule of the project made of what has happened, the first event first.
    """
    return Call(
        "GET",
        f"/projects/{part(str(project))}/alert-explanations",
        query={"instance_id": instance_id, "event_id": event_id, "limit": limit, "cursor": cursor},
    )


def list_alert_receivers(
    project: str, *, limit: int | None = None, cursor: str | None = None
) -> Call[types.AlertReceiverPage]:
    """List receivers of alerts.

    The receivers of a project by name.
    """
    return Call(
        "GET",
        f"/projects/{part(str(project))}/alert-receivers",
        query={"limit": limit, "cursor": cursor},
    )


def list_alert_rules(
    project: str, *, limit: int | None = None, cursor: str | None = None
) -> Call[types.AlertRulePage]:
    """List rules of alerts.

    The rules of a project by name.
    """
    return Call(
        "GET",
        f"/projects/{part(str(project))}/alert-rules",
        query={"limit": limit, "cursor": cursor},
    )


def list_alert_silences(
    project: str, *, limit: int | None = None, cursor: str | None = None
) -> Call[types.AlertSilencePage]:
    """List silences.

    The silences of a project that are not over, newest first.
    """
    return Call(
        "GET",
        f"/projects/{part(str(project))}/alert-silences",
        query={"limit": limit, "cursor": cursor},
    )


def list_alerts(
    project: str,
    *,
    state: Sequence[types.AlertState] | None = None,
    workflow: str | None = None,
    instance_id: int | None = None,
    limit: int | None = None,
    cursor: str | None = None,
) -> Call[types.AlertPage]:
    """List alerts.

    The alerts of a project, newest first.
    """
    return Call(
        "GET",
        f"/projects/{part(str(project))}/alerts",
        query={
            "state": state,
            "workflow": workflow,
            "instance_id": instance_id,
            "limit": limit,
            "cursor": cursor,
        },
    )


def preview_alert(project: str, body: types.AlertPreviewIn) -> Call[types.AlertPreviewOut]:
    """Preview a message about an alert.

    What a rule would say, of an alert or of an example. Nothing is stored or sent.
    """
    return Call("POST", f"/projects/{part(str(project))}/alert-previews", body=body, repeat=True)


def put_alert_channel(
    project: str,
    name: str,
    body: types.AlertChannelIn,
    *,
    if_match: str | None = None,
    if_none_match: str | None = None,
) -> Call[types.AlertChannelOut]:
    """Make or change a channel of alerts.

    Replaces all of it. Secrets that it names have to be there.
    """
    return Call(
        "PUT",
        f"/projects/{part(str(project))}/alert-channels/{part(str(name))}",
        headers={"if-match": if_match, "if-none-match": if_none_match},
        body=body,
    )


def put_alert_receiver(
    project: str,
    name: str,
    body: types.AlertReceiverIn,
    *,
    if_match: str | None = None,
    if_none_match: str | None = None,
) -> Call[types.AlertReceiverOut]:
    """Make or change a receiver of alerts.

    Replaces all of it. Messages from now on go there.
    """
    return Call(
        "PUT",
        f"/projects/{part(str(project))}/alert-receivers/{part(str(name))}",
        headers={"if-match": if_match, "if-none-match": if_none_match},
        body=body,
    )


def put_alert_rule(
    project: str,
    name: str,
    body: types.AlertRuleIn,
    *,
    if_match: str | None = None,
    if_none_match: str | None = None,
) -> Call[types.AlertRuleOut]:
    """Make or change a rule of alerts.

    Replaces all of it. It is about what happens from now on.
    """
    return Call(
        "PUT",
        f"/projects/{part(str(project))}/alert-rules/{part(str(name))}",
        headers={"if-match": if_match, "if-none-match": if_none_match},
        body=body,
    )


def test_alert_channel(
    project: str, name: str, body: types.AlertTestIn
) -> Call[types.AlertDeliveryOut]:
    """Send a test by a channel.

    Has an alert server send a message that says that it is a test.

    The list of deliveries tells what has come of it.
    """
    return Call(
        "POST", f"/projects/{part(str(project))}/alert-channels/{part(str(name))}/tests", body=body
    )

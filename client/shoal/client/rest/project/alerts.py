"""Alerts over REST: what projects define for them, what has happened, who was told."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Literal, TypedDict, cast

from shoal.client.rest.connection import PAGE, Connection
from shoal.client.rest.paths import part
from shoal.client.rest.types import (
    AlertChannelKindJson,
    AlertDeliveryDetailJson,
    AlertDeliveryJson,
    AlertDetailJson,
    AlertExplanationJson,
    AlertJson,
    AlertPreviewJson,
    AlertSilenceJson,
)

AlertThing = Literal["rule", "receiver", "channel"]


class AlertDefinitionJson(TypedDict):
    """A rule, a receiver or a channel: what it is, is in ``spec``."""

    name: str
    version: int
    created_at: str
    updated_at: str
    spec: dict[str, Any]


class AlertCalls:
    """The part of ``ShoalClient`` about alerts."""

    _connection: Connection

    def alerts(
        self,
        project: str,
        *,
        states: Sequence[str] = (),
        workflow: str | None = None,
        instance_id: int | None = None,
        page: int = PAGE,
    ) -> Iterator[AlertJson]:
        """Yield the alerts of a project that fulfil all conditions, the newest first."""
        query = {"state": list(states), "workflow": workflow, "instance_id": instance_id}
        found = self._connection.pages(_path(project, "alerts"), query, page)
        return cast("Iterator[AlertJson]", found)

    def alert(self, project: str, alert_id: int) -> AlertDetailJson:
        """Return an alert with the messages about it."""
        return cast(AlertDetailJson, self._connection.get(_path(project, "alerts", alert_id)))

    def acknowledge_alert(self, project: str, alert_id: int) -> AlertJson:
        """Say that somebody has an alert in hand: nobody is reminded any more."""
        path = f"{_path(project, 'alerts', alert_id)}/acknowledgement"
        return cast(AlertJson, self._connection.json("POST", path))

    def alert_deliveries(
        self,
        project: str,
        *,
        states: Sequence[str] = (),
        channel: str | None = None,
        page: int = PAGE,
    ) -> Iterator[AlertDeliveryJson]:
        """Yield the messages of a project, the newest first."""
        query = {"state": list(states), "channel": channel}
        found = self._connection.pages(_path(project, "alert-deliveries"), query, page)
        return cast("Iterator[AlertDeliveryJson]", found)

    def alert_delivery(self, project: str, delivery_id: int) -> AlertDeliveryDetailJson:
        """Return a message with every attempt to send it."""
        path = _path(project, "alert-deliveries", delivery_id)
        return cast(AlertDeliveryDetailJson, self._connection.get(path))

    def alert_explanations(
        self, project: str, *, instance_id: int | None = None, event_id: int | None = None
    ) -> Iterator[AlertExplanationJson]:
        """Yield what rules made of what happened in a run, or of one event, the first first."""
        query = {"instance_id": instance_id, "event_id": event_id}
        found = self._connection.pages(_path(project, "alert-explanations"), query)
        return cast("Iterator[AlertExplanationJson]", found)

    # -- what is defined ----------------------------------------------------------------------

    def alert_definitions(self, project: str, thing: AlertThing) -> list[AlertDefinitionJson]:
        """Return the rules, receivers or channels of a project by name."""
        found = list(self._connection.pages(_path(project, f"alert-{thing}s"), {}))
        return cast("list[AlertDefinitionJson]", found)

    def alert_definition(self, project: str, thing: AlertThing, name: str) -> AlertDefinitionJson:
        """Return one of them."""
        found = self._connection.get(_path(project, f"alert-{thing}s", name))
        return cast(AlertDefinitionJson, found)

    def put_alert_definition(
        self, project: str, thing: AlertThing, name: str, spec: Mapping[str, Any]
    ) -> AlertDefinitionJson:
        """Make or replace one of them."""
        path = _path(project, f"alert-{thing}s", name)
        return cast(AlertDefinitionJson, self._connection.put_in(project, path, json=dict(spec)))

    def delete_alert_definition(self, project: str, thing: AlertThing, name: str) -> None:
        """Delete one of them."""
        self._connection.request("DELETE", _path(project, f"alert-{thing}s", name))

    def alert_channel_kinds(self) -> list[AlertChannelKindJson]:
        """Return the kinds of channels, with the JSON Schema of their options."""
        found = list(self._connection.pages("/alert-channel-kinds", {}))
        return cast("list[AlertChannelKindJson]", found)

    def test_alert_channel(
        self, project: str, name: str, addresses: Sequence[str] = ()
    ) -> AlertDeliveryJson:
        """Have a test sent by a channel; what comes of it is in ``alert_delivery``."""
        path = f"{_path(project, 'alert-channels', name)}/tests"
        answer = self._connection.json("POST", path, json={"to": list(addresses)})
        return cast(AlertDeliveryJson, answer)

    def preview_alert(
        self, project: str, rule: Mapping[str, Any], alert_id: int | None = None
    ) -> AlertPreviewJson:
        """Return what a rule would say, of an alert or of an example."""
        body = {"rule": dict(rule), "alert_id": alert_id}
        answer = self._connection.json("POST", _path(project, "alert-previews"), json=body)
        return cast(AlertPreviewJson, answer)

    # -- silences -----------------------------------------------------------------------------

    def alert_silences(self, project: str) -> list[AlertSilenceJson]:
        """Return the silences of a project that are not over, the newest first."""
        found = list(self._connection.pages(_path(project, "alert-silences"), {}))
        return cast("list[AlertSilenceJson]", found)

    def silence_alerts(
        self,
        project: str,
        until: datetime,
        *,
        workflow: str = "",
        task: str = "",
        rule: str = "",
        reason: str = "",
    ) -> AlertSilenceJson:
        """Have nobody told of what fits these patterns, from now on; empty ones fit all."""
        body = {
            "workflow": workflow,
            "task": task,
            "rule": rule,
            "until": until.isoformat(),
            "reason": reason,
        }
        answer = self._connection.json("POST", _path(project, "alert-silences"), json=body)
        return cast(AlertSilenceJson, answer)

    def end_alert_silence(self, project: str, silence_id: int) -> None:
        """End a silence."""
        self._connection.request("DELETE", _path(project, "alert-silences", silence_id))


def _path(project: str, what: str, key: str | int | None = None) -> str:
    path = f"/projects/{part(project)}/{what}"
    return path if key is None else f"{path}/{part(str(key))}"

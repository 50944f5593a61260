"""Alerts over REST: what can be defined, what people are told, and why."""

from datetime import UTC, datetime, timedelta
from typing import Any

from shoal.core.alerts.records import DeliveryKind, DeliveryState, Try
from shoal.sql.repositories.events import NewEvent
from tests.integration.api.access.people import account, bearer, token
from tests.integration.api.conftest import PREFIX, Api, problem_of

P = f"{PREFIX}/projects/p"
RULE = {"triggers": ["run.failed"], "receivers": ["people"]}


async def defined(api: Api, *rules: tuple[str, dict[str, Any]]) -> None:
    """A project with a channel, a receiver, and rules."""
    await api.make("p")
    hook = {"kind": "webhook", "options": {"url": "https://hook.example/"}}
    people = {"members": [{"targets": [{"channel": "hook"}]}]}
    for path, body in (
        ("alert-channels/hook", hook),
        ("alert-receivers/people", people),
        *((f"alert-rules/{name}", RULE | spec) for name, spec in rules),
    ):
        answer = await api.client.put(f"{P}/{path}", json=body)
        assert answer.status_code == 201, answer.text


async def happened(api: Api, run: int, *events: dict[str, Any], at: datetime | None = None) -> None:
    """Store events of a run, as masters do."""
    at = at or datetime.now(UTC)
    made = [
        NewEvent(at, one.pop("kind", "instance.state"), "p", {"workflow": "daily", **one}, run)
        for one in events
    ]
    async with api.services.store.unit_of_work() as uow:
        await uow.projects.set_description("p", f"written at {at}")  # events never come first
        await uow.events.add(made)
        await uow.commit()


async def why(api: Api, **query: int) -> list[dict[str, Any]]:
    answer = await api.client.get(f"{P}/alert-explanations", params=query)
    assert answer.status_code == 200, answer.text
    items: list[dict[str, Any]] = answer.json()["items"]
    return items


async def test_what_is_not_there_cannot_be_named(api: Api) -> None:
    await defined(api)
    for path, body, says in (
        ("alert-rules/x", RULE | {"receivers": ["nobody"]}, "the project has no receiver nobody"),
        (
            "alert-rules/x",
            RULE | {"escalation": [{"after": "1h", "receivers": ["boss"]}]},
            "the project has no receiver boss",
        ),
        (
            "alert-receivers/x",
            {"members": [{"targets": [{"channel": "mail"}]}]},
            "the project has no channel mail",
        ),
        ("alert-channels/x", {"kind": "pigeon"}, "there is no channel of kind 'pigeon'"),
        ("alert-channels/x", {"kind": "email", "options": {"host": "h"}}, "options.sender"),
        (
            "alert-channels/x",
            {"kind": "webhook", "options": {"url_secret": "absent"}},
            "the project has no secret absent; set it first",
        ),
        ("alert-rules/x", RULE | {"templates": {"text": "{% for"}}, "templates.text"),
        ("alert-rules/x", RULE | {"triggers": ["workflow.no-success"]}, "no_success_for"),
    ):
        answer = await api.client.put(f"{P}/{path}", json=body)
        document = problem_of(answer, 422, "invalid-request")
        assert says in document["detail"], document
    assert (await api.client.get(f"{P}/alert-rules")).json()["items"] == []


async def test_rules_about_the_cluster_are_for_its_administrators(api: Api) -> None:
    await defined(api)
    async with api.services.store.unit_of_work() as uow:
        now = datetime.now(UTC)
        ada = await account(uow, "ada", now, {"p": "owner"})
        _, text = await token(uow, ada, now)
        await uow.commit()
    about = RULE | {"triggers": ["worker.gone"]}
    refused = await api.client.put(f"{P}/alert-rules/nodes", json=about, headers=bearer(text))
    assert "administrators" in problem_of(refused, 403, "forbidden")["detail"]
    own = await api.client.put(f"{P}/alert-rules/own", json=RULE, headers=bearer(text))
    assert own.status_code == 201
    assert (await api.client.put(f"{P}/alert-rules/nodes", json=about)).status_code == 201


async def test_rules_say_why_nobody_was_told(api: Api) -> None:
    early = datetime.now(UTC) - timedelta(minutes=1)
    await api.make("p")
    await happened(api, 1, {"state": "FAILED", "reason": "no disk"}, at=early)
    await defined(
        api,
        ("all", {}),
        ("late", {"triggers": ["run.late"]}),
        ("off", {"enabled": False}),
        ("other", {"workflows": ["load-*"]}),
        ("labelled", {"labels": ["team=data"]}),
    )
    await happened(api, 2, {"state": "FAILED", "reason": "no disk"})
    [one] = await why(api, instance_id=1)
    assert {rule["reason"] for rule in one["rules"]} == {"the rule was made later"}
    [one] = await why(api, instance_id=2)
    assert (one["trigger"], one["workflow"], one["reason"]) == ("run.failed", "daily", "no disk")
    assert {rule["rule"]: rule["reason"] for rule in one["rules"]} == {
        "all": "no alert server has read it yet; is one running?",
        "labelled": "the run has no label team=data",
        "late": "the rule is not about run.failed",
        "off": "the rule is disabled",
        "other": "the rule is not about workflow daily",
    }
    assert await why(api, event_id=one["event_id"]) == [one]
    assert await why(api, event_id=one["event_id"] + 1000) == []
    both = await api.client.get(f"{P}/alert-explanations?instance_id=1&event_id=1")
    problem_of(both, 422, "invalid-request")


async def test_attempt_that_another_follows_is_explained_as_such(api: Api) -> None:
    await defined(api, ("failed", {"triggers": ["task.failed"]}))
    task = {"kind": "task.state", "task": "load"}
    await happened(
        api,
        3,
        {**task, "state": "FAILED", "attempt": 1},
        {**task, "state": "WAITING", "attempt": 2},
    )
    await happened(api, 3, {**task, "state": "FAILED", "attempt": 2})
    first, last = await why(api, instance_id=3)
    assert (first["trigger"], last["trigger"]) == ("task.retrying", "task.failed")
    assert first["rules"][0]["reason"] == "the rule is not about task.retrying"


async def test_explanations_come_in_pages(api: Api) -> None:
    await defined(api, ("all", {}))
    for _ in range(5):
        await happened(api, 4, {"state": "FAILED"})
    found: list[int] = []
    cursor: str | None = None
    while True:
        query: dict[str, str | int] = {"instance_id": 4, "limit": 2}
        if cursor is not None:
            query["cursor"] = cursor
        answer = (await api.client.get(f"{P}/alert-explanations", params=query)).json()
        found += [one["event_id"] for one in answer["items"]]
        cursor = answer["next"]
        if cursor is None:
            break
    assert len(found) == len(set(found)) == 5


async def test_message_tells_of_every_attempt(api: Api) -> None:
    await defined(api)
    answer = await api.client.post(f"{P}/alert-channels/hook/tests", json={})
    assert answer.status_code == 202
    sent = answer.json()
    now = datetime.now(UTC)
    async with api.services.store.unit_of_work() as uow:
        await uow.deliveries.add_try(sent["id"], Try(1, now, 30.0, False, "no answer"))
        await uow.deliveries.add_try(sent["id"], Try(2, now, 0.5, True, "204 "))
        await uow.deliveries.settle(sent["id"], DeliveryState.SENT, now, "204 ")
        await uow.commit()
    found = (await api.client.get(f"{P}/alert-deliveries/{sent['id']}")).json()
    assert (found["state"], found["kind"], found["alerts"]) == ("SENT", DeliveryKind.TEST, [])
    assert [(one["number"], one["is_sent"]) for one in found["attempts"]] == [(1, False), (2, True)]
    problem_of(await api.client.get(f"{P}/alert-deliveries/999"), 404, "not-found")


async def test_preview_says_what_a_rule_would_say(api: Api) -> None:
    await api.make("p")
    body: dict[str, Any] = {"rule": RULE | {"workflows": ["load-*"], "language": "zh"}}
    shown = (await api.client.post(f"{P}/alert-previews", json=body)).json()
    assert shown["subject"] == "[warning] p: load-daily 失败"
    assert "<h2" in shown["html"]
    templates = {"subject": "{{ alerts[0].workflow | upcase }}", "text": "<b>{{ severity }}</b>"}
    body = {"rule": RULE | {"templates": templates}}
    shown = (await api.client.post(f"{P}/alert-previews", json=body)).json()
    assert (shown["subject"], shown["text"]) == ("DAILY", "<b>warning</b>")
    assert "&lt;b&gt;warning" in shown["html"]
    for template, says in (
        ("{{ nothing }}", "'nothing' is undefined"),
        ("{% for i in (1..1000) %}{% for j in (1..1000) %}x{% endfor %}{% endfor %}", "limit"),
        ("{% include 'x' %}", "a template includes no others"),
    ):
        body = {"rule": RULE | {"templates": {"text": template}}}
        refused = await api.client.post(f"{P}/alert-previews", json=body)
        assert says in problem_of(refused, 422, "invalid-request")["detail"]
    absent = await api.client.post(f"{P}/alert-previews", json={"rule": RULE, "alert_id": 9})
    problem_of(absent, 404, "not-found")


async def test_silence_ends_in_the_future(api: Api) -> None:
    await defined(api)
    past = await api.client.post(f"{P}/alert-silences", json={"until": "2020-01-01T00:00:00Z"})
    assert "must lie in the future" in problem_of(past, 422, "invalid-request")["detail"]
    made = await api.client.post(f"{P}/alert-silences", json={"until": "2100-01-01T00:00:00Z"})
    assert made.status_code == 201
    gone = f"{P}/alert-silences/{made.json()['id']}"
    assert (await api.client.delete(gone)).status_code == 204
    problem_of(await api.client.delete(gone), 404, "not-found")

"""Some rows of every kind in a project, for tests that look at all routes."""

from datetime import UTC, datetime
from typing import Any

from shoal.coordination.queue.entry import QueueEntry
from shoal.core.alerts.occurrences import Trigger
from shoal.core.alerts.records import AlertState, DeliveryKind, NewAlert, NewDelivery
from shoal.core.alerts.rules import Severity
from shoal.core.backfill.request import asked
from shoal.core.decide import decide
from shoal.core.runs.events import Begun
from shoal.core.runs.quarantine import ItemConsumer, ItemKind, QuarantinedItem
from shoal.core.runs.run import Run
from shoal.sql.backfill_plans import plan_of
from tests.integration.api.conftest import PREFIX, Api
from tests.integration.api.runs.past import past_ids
from tests.support.insight import rollups


async def _alerts(api: Api, project: str, word: str) -> dict[str, int]:
    """Make a rule with all that it needs, an alert of which somebody was told, and a silence."""
    home = f"{PREFIX}/projects/{project}"
    hook = {"kind": "webhook", "options": {"url": "https://hook.example/"}, "description": word}
    people = {"members": [{"name": word, "targets": [{"channel": "hook"}]}]}
    rule = {"triggers": ["run.failed"], "receivers": ["people"], "description": word}
    for path, content in (
        ("alert-channels/hook", hook),
        ("alert-receivers/people", people),
        ("alert-rules/night", rule),
    ):
        answer = await api.client.put(f"{home}/{path}", json=content)
        assert answer.status_code == 201, answer.text
    silence = await api.client.post(
        f"{home}/alert-silences", json={"until": "2100-01-01T00:00:00Z", "reason": word}
    )
    assert silence.status_code == 201, silence.text
    now = datetime.now(UTC)

    async with api.services.store.unit_of_work() as uow:
        found = NewAlert(
            project,
            "night",
            Trigger.RUN_FAILED,
            Severity.WARNING,
            "run/daily",
            "daily",
            1,
            now,
            AlertState.OPEN,
            reason=word,
        )
        [alert] = await uow.alerts.add([found])
        told = NewDelivery(
            project, "night", "people", "hook", (word,), DeliveryKind.FIRING, now, (alert.id,)
        )
        await uow.deliveries.collect([told], now)
        [delivery] = await uow.deliveries.list(project, limit=1)
        await uow.commit()
    return {
        "alert_id": alert.id,
        "delivery_id": delivery.id,
        "silence_id": silence.json()["id"],
    }


async def stocked(api: Api, project: str, word: str = "hidden") -> dict[str, Any]:
    """Make some rows of every kind in a project; return what they are called.

    ``word`` stands wherever people write what they like. Needs the key of secrets.
    """

    async def put(path: str, content: Any, **more: Any) -> None:
        answer = await api.client.put(f"{PREFIX}/projects/{project}/{path}", json=content, **more)
        assert answer.status_code < 300, answer.text

    await api.store(lambda uow: uow.projects.ensure(project, datetime.now(UTC)))
    # They belong to no project: each has the name of one.
    answer = await api.client.put(f"{PREFIX}/environments/{project}", json={"setup": "true"})
    assert answer.status_code == 201, answer.text
    await put("calendars/days", {"days": ["2026-01-01"], "description": word})
    await put("concurrency-groups/gpu", {"slots": 1, "description": word})
    await put("parameters/x", {"value": word})
    await put("secrets/s", {"value": word})
    source = {"kind": "mariadb", "host": "db", "port": 1, "user": word, "password": word}
    file = f"{PREFIX}/projects/{project}/resource-contents/etl/a.py"
    assert (await api.client.put(file, content=word.encode())).status_code == 201
    await put("data-sources/wh", {**source, "options": {"charset": "latin1"}})
    schedule = {"cron": "0 0 6 * * ?", "calendar": "days", "parameters": {"y": word}}
    tasks = [
        {
            "name": "fetch",
            "type": "SHELL",
            "params": {"script": "true"},
            "concurrency_group": "gpu",
        },
        {"name": "report", "type": "SHELL", "params": {"script": "true"}, "depends_on": ["fetch"]},
    ]
    await api.publish(
        "daily",
        project,
        schedules=[schedule],
        tasks=tasks,
        parameters={"y": word},
        description=word,
    )
    await put("workflows/daily/draft", {"text": word})
    layout = "workflows/daily/layout"
    await put(layout, {"places": {"fetch": {"x": 1, "y": 2}}}, headers={"If-Match": "*"})
    alerts = await _alerts(api, project, word)
    past = await past_ids(api, project)
    run = await api.started("daily", project, y=word)
    await _begin(api, run)
    backfill = await _backfill(api, project)
    purge = await api.client.post(f"{PREFIX}/purges", json={"dry_run": True, "project": project})
    assert purge.status_code == 202, purge.text
    await _quarantined(api, project)
    schedules = await api.client.get(f"{PREFIX}/projects/{project}/workflows/daily/schedules")
    await rollups.stock(api.services.store.database, project)
    async with api.services.store.unit_of_work(read_only=True) as uow:
        instance = await uow.instances.get(run.id)
        attempts = await uow.tasks.of_instance(run.id)
    await api.services.cluster.queue.put(
        [QueueEntry("default", instance.priority, run.id, 2, attempts[0].id, instance.partition)]
    )
    return {
        "project": project,
        "instance_id": run.id,
        "other_instance_id": run.id,
        "task_instance_id": attempts[0].id,
        "command_id": instance.command_id,
        "schedule_id": schedules.json()["items"][0]["id"],
        "backfill_id": backfill,
        **alerts,
        "purge_id": purge.json()["id"],
        **past,
        "path": "etl/a.py",
        "version": 1,
    }


async def _quarantined(api: Api, project: str) -> None:
    now = api.services.store.clock()
    async with api.services.store.unit_of_work() as uow:
        for number in ("17", "18"):
            await uow.quarantine.note(
                QuarantinedItem(
                    kind=ItemKind.EVENT,
                    item=number,
                    partition=None,
                    reason="KeyError: 'task' (occurrences.py:149)",
                    tries=1,
                    since=now,
                    consumer=ItemConsumer.ALERTS,
                    project=project,
                    workflow="daily",
                    last_at=now,
                    is_skipped=True,
                )
            )
        await uow.commit()


async def _begin(api: Api, run: Run) -> None:
    """Let its first task wait for a slot, as a master does."""
    now = datetime.now(UTC)
    decision = decide(run, Begun(now))
    run.apply(decision)
    await api.store(lambda uow: uow.instances.save([(run, decision)], now))


async def _backfill(api: Api, project: str) -> int:
    """Ask for a backfill and create it, as a master does."""
    body = {"project": project, "workflow": "daily", "from": "2026-01-01", "to": "2026-01-03"}
    answer = await api.client.post(f"{PREFIX}/backfills", json=body)
    assert answer.status_code == 202, answer.text
    return await carried_out(api, answer.json()["command"]["id"])


async def carried_out(api: Api, command_id: int) -> int:
    """Create the backfill that a command asks for, as a master does; return its id."""
    now = datetime.now(UTC)
    async with api.services.store.unit_of_work() as uow:
        command = await uow.commands.get(command_id)
        request, _ = asked(command.detail)
        created = await uow.backfills.create(command, request, await plan_of(uow, request), now)
        await uow.commands.done(command.id, None, now)
        await uow.commit()
    return created.id

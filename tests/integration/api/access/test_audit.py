"""The audit of the API: who did what, from where, refused things too; nothing that is secret."""

import json
from collections.abc import AsyncIterator
from datetime import datetime, timedelta
from typing import Any

import pytest

from shoal.api.access.audit import Auditor
from shoal.api.endpoints.guard import needs
from shoal.api.endpoints.route import strict_router
from shoal.api.settings import ApiSettings
from shoal.core.access.audit.chain import ChainHead, Verifier
from shoal.core.access.permissions import Permission
from shoal.core.access.principals import TokenScope
from shoal.runtime.settings import ClusterSettings
from shoal.runtime.vault import create_key
from tests.integration.api.access.people import account, token
from tests.integration.api.conftest import PREFIX, Api, definition, in_process, opened

CANARY = "swordfish-in-the-audit"


@pytest.fixture
async def api(cluster: ClusterSettings, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Api]:
    """An API whose auditor works when a test says so."""
    monkeypatch.setattr(Auditor, "GATHER_S", 3600.0)
    create_key(cluster.secrets_key_file)
    async with opened(cluster, ApiSettings(port=0)) as services, in_process(services) as api:
        yield api


async def entries(api: Api, query: str = "", **headers: str) -> list[dict[str, Any]]:
    await api.services.access.auditor.settle()
    answer = await api.client.get(f"{PREFIX}/audit?limit=500{query}", headers=headers)
    assert answer.status_code == 200, answer.text
    found: list[dict[str, Any]] = answer.json()["items"]
    return [one for one in found if one["action"] not in ("break-glass.use", "audit.read")]


async def findings(api: Api, *known: ChainHead) -> tuple[list[str], ChainHead | None]:
    await api.services.access.auditor.settle()
    verifier, after = Verifier(known), 0
    while True:
        answer = await api.client.get(f"{PREFIX}/audit-chain?after={after}&limit=3")
        if not answer.json():
            return verifier.end(), verifier.head
        for link in answer.json():
            verifier.read(link)
        after = answer.json()[-1]["position"]


async def person(api: Api, name: str, role: str | None = None, **more: Any) -> dict[str, str]:
    """Return the headers of somebody, who has a role in the project p."""
    async with api.services.store.unit_of_work() as uow:
        now = api.services.store.clock()
        await uow.projects.ensure("p", now)
        made = await account(uow, name, now, {"p": role} if role else {}, **more)
        _, text = await token(uow, made, now, TokenScope())
        await uow.commit()
    return {"Authorization": f"Bearer {text}"}


async def test_change_has_an_entry_that_says_who_what_and_from_where(api: Api) -> None:
    ada = await person(api, "ada", "owner")
    put = f"{PREFIX}/projects/p/secrets/db_password"
    assert (await api.client.put(put, json={"value": CANARY}, headers=ada)).status_code == 201
    source = {"kind": "mariadb", "host": "db", "port": 1, "user": "u", "password": CANARY}
    await api.client.put(f"{PREFIX}/projects/p/data-sources/wh", json=source, headers=ada)
    await api.client.put(f"{PREFIX}/projects/p/members/user/ada", json={"role": "owner"})
    member, data_source, secret = await entries(api)
    assert (secret["action"], secret["principal"], secret["project"]) == ("secret.set", "ada", "p")
    assert (secret["object"], secret["outcome"]) == ("db_password", "done")
    assert secret["address"]
    assert secret["principal_id"] is not None
    assert data_source["detail"]["asked"]["host"] == "db"
    assert member["principal"] == "break-glass"
    assert member["detail"]["asked"] == {"role": "owner"}
    assert (member["object"], member["principal_id"]) == ("user/ada", None)
    assert CANARY not in json.dumps(await entries(api))
    assert await findings(api) == ([], await _head(api))


async def _head(api: Api) -> ChainHead:
    answer = (await api.client.get(f"{PREFIX}/audit-head")).json()
    assert answer["unlinked"] == 0
    return ChainHead(answer["position"], answer["hash"])


async def test_command_has_an_entry_and_its_repetition_none(api: Api) -> None:
    await api.publish()
    body = {"type": "START", "project": "p", "workflow": "daily"}
    for _ in range(2):
        await api.command(**body, idempotency_key="k")
    run = await api.started("daily", "p")
    await api.command(type="STOP", instance_id=run.id)
    stop, start_again, start, publish = await entries(api)
    assert [one["action"] for one in (stop, start, publish)] == [
        "command.stop",
        "command.start",
        "workflow.publish",
    ]
    assert (start["project"], start["object"]) == ("p", "daily")
    assert (stop["project"], stop["object"]) == ("p", str(run.id)), "the project is looked up"
    assert start_again["id"] > start["id"]


async def test_refusals_are_stored_once_and_counted(api: Api) -> None:
    eve = await person(api, "eve", "reader")
    for number in range(20):
        path = f"{PREFIX}/projects/p/secrets/s{number}"
        answer = await api.client.put(path, json={"value": CANARY}, headers=eve)
        assert answer.status_code == 403
        await api.client.get(f"{PREFIX}/projects/hidden/secrets", headers=eve)
    found = await entries(api, "&principal=eve")
    assert sorted(one["action"] for one in found) == ["list_secrets", "secret.set"]
    assert {one["outcome"] for one in found} == {"refused"}
    await api.services.access.auditor.settle(everything=True)
    counts = [one["detail"].get("count") for one in await entries(api, "&principal=eve")]
    assert sorted(counts, key=str) == [19, 19, None, None]
    refused = await entries(api, "&outcome=refused&action=secret.*")
    assert len(refused) == 2
    assert await findings(api) == ([], await _head(api))


async def test_good_and_bad_logins_are_stored_and_no_password(api: Api) -> None:
    user = {"name": "ada", "password": "correct horse battery"}
    assert (await api.client.post(f"{PREFIX}/users", json=user)).status_code == 201
    for name, password in (("ada", CANARY), (CANARY, "x"), ("ada", "correct horse battery")):
        login = {"name": name, "password": password}
        await api.client.post(f"{PREFIX}/login", json=login)
    await api.client.get(f"{PREFIX}/me", headers={"Authorization": "Bearer shoal_pat_0_00000000"})
    found = await entries(api, "&action=session.begin")
    assert [(one["principal"], one["outcome"]) for one in found if one["principal"]] == [
        ("ada", "refused"),
        ("ada", "done"),
    ]
    assert [one["outcome"] for one in found if not one["principal"]] == ["refused"]
    assert [one["outcome"] for one in await entries(api, "&action=token.use")] == ["refused"]
    assert CANARY not in json.dumps(await entries(api))


async def test_use_of_break_glass_is_noted_once_an_hour(api: Api) -> None:
    for _ in range(5):
        await api.client.get(f"{PREFIX}/me")
    await api.services.access.auditor.settle()
    found = await api.client.get(f"{PREFIX}/audit?action=break-glass.use")
    assert len(found.json()["items"]) == 1


async def test_owners_see_their_project_alone(api: Api) -> None:
    owner, writer = await person(api, "olga", "owner"), await person(api, "willy", "writer")
    for project in ("p", "q"):
        await api.client.put(f"{PREFIX}/projects/{project}/parameters/x", json={"value": "v"})
    await api.services.access.auditor.settle()
    mine = await api.client.get(f"{PREFIX}/projects/p/audit?action=parameter.*", headers=owner)
    assert [one["project"] for one in mine.json()["items"]] == ["p"]
    for headers in (owner, writer):
        assert (await api.client.get(f"{PREFIX}/audit", headers=headers)).status_code == 403
        assert (await api.client.get(f"{PREFIX}/audit-chain", headers=headers)).status_code == 403
    refused = await api.client.get(f"{PREFIX}/projects/p/audit", headers=writer)
    assert refused.status_code == 403
    hidden = await api.client.get(f"{PREFIX}/projects/q/audit", headers=owner)
    assert hidden.status_code == 404


async def test_pages_go_on_where_they_ended(api: Api) -> None:
    for number in range(5):
        await api.client.put(f"{PREFIX}/projects/p/parameters/x{number}", json={"value": "v"})
    found, cursor = [], ""
    while cursor is not None:
        query = f"?action=parameter.set&limit=2{cursor and '&cursor=' + cursor}"
        answer = (await api.client.get(f"{PREFIX}/audit{query}")).json()
        found += [one["object"] for one in answer["items"]]
        cursor = answer["next"]
    assert found == ["x4", "x3", "x2", "x1", "x0"]


async def test_pruning_leaves_what_can_be_verified(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(5):
        await api.client.put(f"{PREFIX}/projects/p/parameters/x{number}", json={"value": "v"})
    await api.services.access.auditor.settle()
    now = api.services.store.clock()

    async def prune(before: datetime) -> Any:
        body = {"before": before.isoformat()}
        return await api.client.post(f"{PREFIX}/audit-prunes", json=body)

    assert (await prune(now)).status_code == 422, "the last day stays"
    assert (await prune(now - timedelta(days=2))).json()["removed"] == 0
    monkeypatch.setattr("shoal.api.routes.access.audit._KEPT_AT_LEAST", timedelta())
    assert (await prune(now)).json()["removed"] > 3
    assert [one["action"] for one in await entries(api)][:1] == ["audit.prune"]
    assert (await findings(api))[0] == []


async def test_two_processes_link_one_chain(api: Api) -> None:
    services = api.services
    async with Auditor(services.store.database, services.store.clock) as other:
        for number in range(6):
            path = f"{PREFIX}/projects/p/parameters/x{number}"
            await api.client.put(path, json={"value": "v"})
            await (other if number % 2 else services.access.auditor).settle()
        found, head = await findings(api)
    assert found == []
    assert head is not None
    assert head.position >= 6


async def test_entry_of_a_change_that_failed_is_not_there(api: Api) -> None:
    await api.publish()
    before = len(await entries(api))
    answer = await api.client.delete(f"{PREFIX}/projects/p/secrets/none")
    assert answer.status_code == 404
    broken = definition(tasks=[{"name": "a", "type": "NONE"}])
    answer = await api.client.put(f"{PREFIX}/projects/p/workflows/daily", json=broken)
    assert answer.status_code == 422
    assert len(await entries(api)) == before


def test_route_that_changes_something_names_its_action() -> None:
    router = strict_router("x")

    @needs(Permission.SIGNED_IN)
    async def silent() -> None: ...

    with pytest.raises(TypeError, match="audit="):
        router.delete("/x")(silent)
    with pytest.raises(TypeError, match="not an action"):
        needs(Permission.SIGNED_IN, audit="Something else")


async def test_each_of_many_has_its_entry_and_refusals_too(api: Api) -> None:
    ours, theirs = await api.run(project="p"), await api.run(project="q")
    await api.services.access.auditor.settle()
    before = len(await entries(api))
    ada = await person(api, "ada", "runner")
    body = {"type": "STOP", "ids": [ours.id, theirs.id]}
    answer = await api.client.post(f"{PREFIX}/bulk-commands", json=body, headers=ada)
    assert answer.status_code == 202, answer.text
    found = await entries(api)
    told = {
        (one["action"], one["object"], one["outcome"], one["principal"])
        for one in found[: len(found) - before]
    }
    assert told == {
        ("command.stop", str(ours.id), "done", "ada"),
        ("command.stop", str(theirs.id), "refused", "ada"),
    }

"""The API keeps to its description, whatever it is asked, and every operation can succeed.

``SHOAL_CONFORMANCE_EXAMPLES`` asks for more requests, ``SHOAL_CONFORMANCE_SEED`` for others
(``make conformance``). ``SHOAL_RECORD_EXAMPLES`` writes the examples of the description anew
(``make examples``).
"""

import asyncio
import json
import os
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from shoal.api.pages.openapi import RECORDED
from shoal.api.services import Services
from shoal.api.settings import ApiSettings
from shoal.core.runs.states import TaskState
from shoal.runtime.settings import ClusterSettings
from shoal.runtime.vault import create_key
from tests.contract.conformance import Good, Report, run
from tests.contract.described import described
from tests.contract.examples import recorded
from tests.integration.api.access.people import account, bearer, browser, session, token
from tests.integration.api.access.table import (
    ALERT_CHANNEL,
    ALERT_RECEIVER,
    ALERT_RULE,
    BODIES,
    in_path,
)
from tests.integration.api.conftest import PREFIX, Api, new_cluster
from tests.integration.api.fake_worker import FakeWorker, fake_worker
from tests.integration.api.runs.attempts import set_state
from tests.integration.api.stock import stocked

EXAMPLES = int(os.environ.get("SHOAL_CONFORMANCE_EXAMPLES", "2"))
RECORDING = "SHOAL_RECORD_EXAMPLES" in os.environ
SEED = int(os.environ.get("SHOAL_CONFORMANCE_SEED", "1"))
PROJECT = "flights"
PASSWORD = "correct horse battery staple"
# What is in use cannot be deleted, so each has one that is not.
SPARE = "spare"
# Nor are the things that others need.
NAMED = {
    **dict.fromkeys(("deleteCalendar", "deleteConcurrencyGroup", "deleteWorkflow"), SPARE),
    **dict.fromkeys(("deleteAlertRule", "deleteAlertReceiver", "deleteAlertChannel"), SPARE),
    "publishWorkflow": SPARE,
    "renameWorkflow": "moving",
    "copyWorkflow": "copied",
    **dict.fromkeys(("getDraft", "putDraft"), "kept"),
    "publishDraft": "drafted",
    "deleteDraft": "discarded",
    "deleteGroup": "analysts",  # which createGroup has made
    "resetUserPassword": "forgetful",
}
SOURCE = {"kind": "mariadb", "host": "db", "port": 1, "user": "u", "password": "long enough"}
DEFINITION = json.dumps({"tasks": [{"name": "a", "type": "SHELL", "params": {"script": "true"}}]})
BODY = {
    "putSecret": {"value": "long enough"},
    "putDataSource": SOURCE,
    "importProject": {"text": DEFINITION.replace("{", '{"name": "brought", ', 1)},
    "putDraft": {"text": DEFINITION},
    "publishWorkflow": {
        "name": SPARE,
        "description": "Fetches departures, then reports them.",
        "owner": "data-team",
        "parameters": {"day": {"default": "$[yyyy-MM-dd]"}},
        "schedules": [{"cron": "0 0 6 * * ?", "timezone": "Europe/Berlin"}],
        "tasks": [
            {
                "name": "fetch",
                "type": "SHELL",
                "params": {"script": "./fetch.sh ${day}"},
                "retries": 2,
            },
            {
                "name": "report",
                "type": "SHELL",
                "params": {"script": "./report.sh"},
                "depends_on": ["fetch"],
            },
        ],
    },
}
QUERY: Mapping[str, Mapping[str, Any]] = {
    "searchLog": {"text": "hello"},
    "searchLogs": {"text": "hello"},
    "listAlertExplanations": {"event_id": 1},
    "listInsightTasks": {"project": PROJECT, "workflow": "daily"},
    "listInsightRollupRows": {"job": "task_days", "day": "2026-01-31"},
}
ABOUT_A_STATE = ("putDraft", "deleteDraft", "putLayout")  # which have to say which
#: Of one's own account, which needs a session.
OWN = {
    "login": {"name": "olga", "password": PASSWORD},
    "changePassword": {"current": PASSWORD, "new": "much better words than before"},
    "createToken": {"name": "t", "days": 1},
    "revokeToken": None,
    "listTokens": None,
    "listSessions": None,
    "endSession": None,
    "logout": None,
    "createServiceAccountToken": {"name": "t", "days": 1},
}
LAST = ("changePassword", "logout")  # which end the session
LOGS = ("getLog", "downloadLog", "followLog")


@pytest.fixture
def settings() -> ApiSettings:
    """As ever, but that nobody is slowed down for asking much."""
    return ApiSettings(port=0, heartbeat_s=0.2)


@pytest.fixture
def cluster(tmp_path: Path, zk_chroot: str, migrated_file: Path) -> ClusterSettings:
    """As ever, with an archive, so that past runs have logs."""
    made = new_cluster(tmp_path, zk_chroot, migrated_file)
    return made.model_copy(update={"logs_url": str(tmp_path / "logs")})


@pytest.fixture
async def worker(services: Services, cluster: ClusterSettings) -> AsyncIterator[FakeWorker]:
    """A worker registered as w1."""
    create_key(cluster.secrets_key_file)
    async with fake_worker(services, cluster) as found:
        yield found


# What schemathesis does to make bad values.
@pytest.mark.filterwarnings("ignore:Do not use the `random` module")
async def test_answers_keep_to_the_description_and_every_operation_succeeds(
    live: Api, worker: FakeWorker
) -> None:
    description = described()
    good = await _good(live, worker, description)
    # Signing in elsewhere needs somewhere: see access/test_oidc.py and test_ldap.py.
    elsewhere = (f"{PREFIX}/login/", f"{PREFIX}/users/{{name}}/identity")
    for path in [one for one in description["paths"] if one.startswith(elsewhere)]:
        del description["paths"][path]
    url = str(live.client.base_url)
    report: Report = await asyncio.to_thread(run, description, url, good, EXAMPLES, SEED)
    assert not report.failures, "\n\n".join(report.failures[:20])
    assert not report.refused, "\n".join(report.refused)
    if RECORDING:
        exchanges = {
            name: {"request": one.body, "answer": report.answers.get(name)}
            for name, one in good.items()
        }
        RECORDED.write_text(recorded(exchanges))


async def _good(api: Api, worker: FakeWorker, description: dict[str, Any]) -> Mapping[str, Good]:
    """Return a request for each operation that has to succeed, and make what it is about."""
    made = await stocked(api, PROJECT, "Departures")
    async with api.services.store.unit_of_work() as uow:
        now = api.services.store.clock()
        hashed = await api.services.access.passwords.hash(PASSWORD)
        ada = await account(uow, "olga", now, {PROJECT: "owner"}, password=hashed)
        someone = await account(uow, "someone", now, {PROJECT: "reader"})
        bot = await account(uow, f"{PROJECT}/bot", now, {PROJECT: "runner"}, of_project=PROJECT)
        await uow.groups.add("crew", "", now)
        await uow.groups.add_member("crew", someone)
        _, cookie = await session(uow, ada, now)
        leaver = await account(uow, "leaver", now, password=hashed)
        _, last = await session(uow, leaver, now)
        await account(uow, "forgetful", now)
        made["session_id"], _ = await session(uow, ada, now)
        ids = {
            name: (await token(uow, who, now))[0]
            for name, who in (("ada", ada), ("someone", someone), ("bot", bot))
        }
        await uow.commit()
    await _spares(api)
    ended = await set_state(api, await api.run("logged", PROJECT), TaskState.SUCCEEDED, "w1")
    await worker.log(ended).write(b"hello\n", finished=True)
    tokens = {
        "revokeToken": "ada",
        "revokeUserToken": "someone",
        "revokeServiceAccountToken": "bot",
    }
    found: dict[str, Good] = {}
    for path, operations in description["paths"].items():
        for method, operation in operations.items():
            name, route = operation["operationId"], (method.upper(), path.removeprefix(PREFIX))
            given = in_path(route, made)
            given["name"] = NAMED.get(name, given["name"])
            if name in LOGS:
                given["task_instance_id"] = ended["id"]
            if name in tokens:
                given["token_id"] = ids[tokens[name]]
            body = BODY.get(name) or (BODIES[route](made) if route in BODIES else None)
            headers = bearer(api.services.token)
            if name in OWN:
                headers, body = browser(last if name in LAST else cookie), OWN[name]
            if name in ABOUT_A_STATE:
                headers = {**headers, "If-Match": "*"}
            found[name] = Good(headers, given, body, QUERY.get(name, {}))
    return found


async def _spares(api: Api) -> None:
    for place, body in (
        (f"projects/{PROJECT}/calendars/spare", {"days": []}),
        (f"projects/{PROJECT}/concurrency-groups/spare", {"slots": 1}),
        (f"projects/{PROJECT}/alert-channels/spare", ALERT_CHANNEL),
        (f"projects/{PROJECT}/alert-receivers/spare", ALERT_RECEIVER),
        (f"projects/{PROJECT}/alert-rules/spare", ALERT_RULE),
        (f"projects/{PROJECT}/grants/other", {"what": "see"}),
        ("environments/lab", {"setup": "true"}),
        (f"projects/{PROJECT}/resource-grants/other", {"paths": ["lib/"]}),
        ("restrictions/worker-group/lab", {"projects": [PROJECT]}),
    ):
        answer = await api.client.put(f"{PREFIX}/{place}", json=body)
        assert answer.status_code == 201, answer.text
    for name in (SPARE, "moving"):
        await api.publish(name, PROJECT)
    for name in ("kept", "drafted", "discarded"):
        draft = f"{PREFIX}/projects/{PROJECT}/workflows/{name}/draft"
        assert (await api.client.put(draft, json={"text": DEFINITION})).status_code == 201

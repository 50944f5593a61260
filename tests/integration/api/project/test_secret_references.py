"""Secrets that are kept in other stores: set, tried and audited over REST; never shown."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import structlog.testing

from shoal.api.access.audit import Auditor
from shoal.api.operations.data_sources import usable
from shoal.api.settings import ApiSettings
from shoal.core.data_sources.spec import DataSourceSpec, SourcePassword
from shoal.runtime.settings import ClusterSettings
from shoal.runtime.vault import create_key
from tests.integration.api.conftest import PREFIX, Api, fields_of, in_process, opened, problem_of
from tests.support.cases import each_row
from tests.support.servers.vault_server import ROOT_TOKEN, VaultServer, serving

VALUE = "the word of the vault"
REFERENCE = "vault:shoal/p/db#password"
SECRETS = f"{PREFIX}/projects/p/secrets"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[VaultServer]:
    with serving(tmp_path / "vault") as running:
        running.put("shoal/p/db", password=VALUE)
        yield running


@pytest.fixture
async def api(
    cluster: ClusterSettings, tmp_path: Path, server: VaultServer, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Api]:
    monkeypatch.setattr(Auditor, "GATHER_S", 3600.0)
    create_key(cluster.secrets_key_file)
    table = {
        "kind": "vault",
        "url": server.url,
        "ca": str(server.ca),
        "token_file": str(token(tmp_path)),
        "paths": ["shoal/{project}/"],
        "timeout_s": 1.0,
    }
    with_store = cluster.model_copy(update={"secret_stores": {"vault": table}})
    async with opened(with_store, ApiSettings(port=0)) as services, in_process(services) as api:
        await api.make("p")
        yield api


def token(folder: Path) -> Path:
    file = folder / "vault.token"
    file.write_text(ROOT_TOKEN)
    file.chmod(0o600)
    return file


async def test_reference_is_set_shown_and_tried(api: Api, server: VaultServer) -> None:
    with structlog.testing.capture_logs() as logs:
        made = await api.client.put(f"{SECRETS}/db", json={"reference": REFERENCE})
        assert server.seen == [], "nothing is read when it is set"
        tried = await api.client.post(f"{SECRETS}/db/test")
        listed = await api.client.get(SECRETS)
    assert made.status_code == 201, made.text
    assert made.json()["reference"] == REFERENCE
    assert listed.json()["items"] == [made.json()]
    assert (tried.status_code, tried.json()["ok"]) == (200, True)
    assert tried.json()["text"] == f"{REFERENCE} can be read"
    said = made.text + tried.text + listed.text + str(logs)
    assert VALUE not in said
    assert ROOT_TOKEN not in said
    await api.services.access.auditor.settle()
    entries = (await api.client.get(f"{PREFIX}/audit?action=secret.*")).json()["items"]
    assert [(one["action"], one["object"]) for one in entries] == [
        ("secret.try", "db"),
        ("secret.set", "db"),
    ]
    assert entries[1]["detail"]["asked"] == {"reference": REFERENCE}


async def test_value_takes_the_place_of_a_reference_and_back(api: Api) -> None:
    await api.client.put(f"{SECRETS}/db", json={"reference": REFERENCE})
    value = await api.client.put(f"{SECRETS}/db", json={"value": "kept here now"})
    assert (value.status_code, value.json()["reference"]) == (200, None)
    tried = await api.client.post(f"{SECRETS}/db/test")
    assert tried.json()["text"] == "it can be read"
    again = await api.client.put(f"{SECRETS}/db", json={"reference": REFERENCE})
    assert again.json()["reference"] == REFERENCE
    async with api.services.store.unit_of_work(read_only=True) as uow:
        assert (await uow.secrets.stored("p"))["db"].ciphertext == "", "the value is gone"


@each_row(
    "body, field, words",
    [
        ({}, "value", "give either value or reference"),
        ({"value": "a word", "reference": REFERENCE}, "value", "give either"),
        ({"reference": ""}, "reference", "is not a reference"),
        ({"reference": "vault:shoal/p/../q/db#x"}, "reference", "is not a reference"),
        (
            {"reference": "vault:shoal/q/db#password"},
            "reference",
            "may not read; it may: shoal/p/",
        ),
        ({"reference": "vualt:shoal/p/db#x"}, "reference", "did you mean 'vault'"),
        ({"reference": "vault:shoal/p/db"}, "reference", "needs the field"),
    ],
)
async def test_what_is_no_reference_of_the_project_is_refused(
    api: Api, server: VaultServer, body: dict[str, str], field: str, words: str
) -> None:
    found = problem_of(await api.client.put(f"{SECRETS}/db", json=body), 422, "invalid-request")
    assert words in fields_of(found)[field]
    assert (await api.client.get(SECRETS)).json()["items"] == []
    assert server.seen == []


async def test_what_cannot_be_read_is_told_by_the_test(api: Api, server: VaultServer) -> None:
    await api.client.put(f"{SECRETS}/db", json={"reference": "vault:shoal/p/none#x"})
    tried = (await api.client.post(f"{SECRETS}/db/test")).json()
    assert not tried["ok"]
    assert "vault:shoal/p/none cannot be read: there is no such path in secret" in tried["text"]
    server.status, server.errors = 503, ["Vault is sealed"]
    tried = (await api.client.post(f"{SECRETS}/db/test")).json()
    assert tried["text"] == "the store vault gives no answer: it is sealed"
    problem_of(await api.client.post(f"{SECRETS}/none/test"), 404, "not-found")
    api.services.secret_values.vault.file.path.unlink()
    await api.store(
        lambda uow: uow.secrets.put("p", "old", "2:gone:AAAA", api.services.store.clock())
    )
    tried = (await api.client.post(f"{SECRETS}/old/test")).json()
    assert not tried["ok"]


async def test_data_source_is_tried_with_a_password_that_is_kept_elsewhere(api: Api) -> None:
    await api.client.put(f"{SECRETS}/db", json={"reference": REFERENCE})
    spec = DataSourceSpec.model_validate(
        {"kind": "mariadb", "host": "db", "port": 1, "user": "u", "database": "d"}
    )
    services = api.services
    now = services.store.clock()
    async with services.store.unit_of_work(read_only=True) as uow:
        secrets = await uow.secrets.stored("p")
    await api.store(
        lambda uow: uow.data_sources.put("p", "wh", spec, SourcePassword(None, "db"), now)
    )
    async with services.store.unit_of_work(read_only=True) as uow:
        stored = await uow.data_sources.get("p", "wh")
    source = await usable(stored, secrets, services.secret_values, {}, services.store.clock())
    assert source.password == VALUE


async def test_name_of_a_project_is_for_ever(api: Api) -> None:
    """Ciphertexts and references are bound to it: a route that renames or deletes has to see to it.

    Else secrets could be read no more, or a new project of the same name would have them.
    """
    paths = (await api.client.get(f"{PREFIX}/openapi.json")).json()["paths"]
    of_project = paths[f"{PREFIX}/projects/{{project}}"].keys() & {"put", "patch", "post", "delete"}
    assert of_project == {"put"}
    renamed = await api.client.put(f"{PREFIX}/projects/p", json={"name": "q", "description": "d"})
    problem_of(renamed, 422, "invalid-request")

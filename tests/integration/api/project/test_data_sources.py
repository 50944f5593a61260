"""Data sources over REST: what is set comes back, but for the password."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
import structlog

from shoal.api.settings import ApiSettings
from shoal.runtime.settings import ClusterSettings
from shoal.runtime.source_kinds import source_kinds
from shoal.runtime.vault import create_key, password_of_source
from tests.integration.api.conftest import PREFIX, Api, fields_of, in_process, opened, problem_of
from tests.support.cases import each_row
from tests.support.packages import installed

pytestmark = pytest.mark.asyncio(loop_scope="module")

PASSWORD = "correct horse battery"
SERVER: dict[str, Any] = {
    "kind": "postgresql",
    "host": "db.example.org",
    "port": 5433,
    "database": "sales",
    "user": "etl",
    "options": {"sslmode": "require", "connect_timeout": 3},
    "shared_with": ["other"],
}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def api(module_cluster: ClusterSettings) -> AsyncIterator[Api]:
    """The API of this module, with a key for passwords."""
    create_key(module_cluster.secrets_key_file)
    async with opened(module_cluster, ApiSettings(port=0)) as services, in_process(services) as it:
        for project in ("team", "keeps", "paged", "gone", "strict"):
            await it.make(project)
        yield it


def path(project: str, name: str = "") -> str:
    return f"{PREFIX}/projects/{project}/data-sources" + (f"/{name}" if name else "")


async def password_of(api: Api, project: str, name: str) -> str | None:
    """The password as a master reads it."""
    async with api.services.store.unit_of_work(read_only=True) as uow:
        stored = (await uow.data_sources.get(project, name)).password
    if stored.ciphertext is None:
        return stored.secret
    return api.services.secret_values.vault.open(
        project, password_of_source(name), stored.ciphertext
    )


async def test_what_is_set_is_shown_but_the_password(api: Api) -> None:
    with structlog.testing.capture_logs() as logs:
        first = await api.client.put(path("team", "wh"), json={**SERVER, "password": PASSWORD})
        again = await api.client.put(path("team", "wh"), json={**SERVER, "password": PASSWORD})
        shown = await api.client.get(path("team", "wh"))
        listed = await api.client.get(path("team"))
    assert (first.status_code, again.status_code) == (201, 200)
    content = shown.json()
    assert content == again.json()
    assert {name: content[name] for name in SERVER} == SERVER
    assert (content["project"], content["name"], content["version"]) == ("team", "wh", 2)
    assert (content["has_password"], content["password_secret"]) == (True, None)
    assert listed.json() == {"items": [content], "next": None}
    assert "horse" not in first.text + again.text + listed.text + str(logs)
    assert await password_of(api, "team", "wh") == PASSWORD


async def test_password_stays_until_it_is_given_removed_or_the_server_changes(api: Api) -> None:
    place = path("keeps", "wh")
    await api.client.put(place, json={**SERVER, "password": PASSWORD})
    kept = await api.client.put(place, json={**SERVER, "user": "other"})
    assert kept.json()["has_password"]
    assert await password_of(api, "keeps", "wh") == PASSWORD
    moved = await api.client.put(place, json={**SERVER, "host": "elsewhere"})
    document = problem_of(moved, 409, "password-of-another-server")
    assert "give it again" in document["detail"]
    assert (await api.client.get(place)).json()["host"] == SERVER["host"]
    secret = await api.client.put(
        place, json={**SERVER, "host": "elsewhere", "password": "${secret.db}"}
    )
    assert (secret.json()["has_password"], secret.json()["password_secret"]) == (True, "db")
    gone = await api.client.put(place, json={**SERVER, "host": "elsewhere", "password": None})
    assert not gone.json()["has_password"]
    assert await password_of(api, "keeps", "wh") is None


async def test_list_comes_in_pages(api: Api) -> None:
    for name in ("c", "a", "b"):
        await api.client.put(path("paged", name), json=SERVER)
    first = (await api.client.get(path("paged"), params={"limit": 2})).json()
    query = {"limit": 2, "cursor": first["next"]}
    second = (await api.client.get(path("paged"), params=query)).json()
    assert [one["name"] for one in first["items"] + second["items"]] == ["a", "b", "c"]
    assert second["next"] is None


async def test_deleted_data_source_is_gone(api: Api) -> None:
    await api.client.put(path("gone", "wh"), json=SERVER)
    assert (await api.client.delete(path("gone", "wh"))).status_code == 204
    for answer in (
        await api.client.get(path("gone", "wh")),
        await api.client.delete(path("gone", "wh")),
        await api.client.get(path("nobody")),
    ):
        problem_of(answer, 404, "not-found")


@each_row(
    "changes, field, words",
    [
        ({"kind": "postgres"}, "kind", "did you mean 'postgresql'?"),
        ({"kind": "oracle"}, "kind", "pip install shoal-experimental-databases"),
        ({"port": 0}, "port", "greater than or equal to 1"),
        ({"port": "5432"}, "port", "valid integer"),
        ({"host": ""}, "host", "is required for postgresql"),
        ({"options": {"sslmod": "x"}}, "options.sslmod", "did you mean 'sslmode'?"),
        ({"options": {"sslrootcert": "/etc/passwd"}}, "options.sslrootcert", "is not an option"),
        ({"options": {"sslmode": ["require"]}}, "options.sslmode", "must be a text, a number"),
        ({"options": {"sslmode": "require", "ca_certificate": "x" * 70_000}}, None, "65,536"),
        ({"password": "abc"}, "password", "less than 4 characters"),
        ({"password": "${secret.a-b}"}, "password", "is not a name of a secret"),
        ({"passwort": "abcd"}, "passwort", "is not a known field"),
        (
            {"kind": "sqlite", "host": "", "port": None, "user": "", "database": "/x.db"}
            | {"options": {}, "password": PASSWORD},
            "password",
            "is a file of the worker",
        ),
        ({"shared_with": ["other"], "host": "${env}"}, "host", "could choose where"),
    ],
)
async def test_what_cannot_be_stored_is_refused_by_field(
    api: Api, changes: dict[str, Any], field: str | None, words: str
) -> None:
    answer = await api.client.put(path("strict", "wh"), json={**SERVER, **changes})
    document = problem_of(answer, 422, "invalid-request")
    found = fields_of(document)
    assert words in (found[field] if field else answer.text)
    assert "horse" not in answer.text
    problem_of(await api.client.get(path("strict", "wh")), 404, "not-found")


async def test_name_is_that_of_a_secret(api: Api) -> None:
    problem_of(await api.client.put(path("p", "a-b"), json=SERVER), 422, "invalid-request")


async def test_kinds_say_enough_for_a_form(api: Api) -> None:
    listed = (await api.client.get(f"{PREFIX}/data-source-kinds")).json()
    kinds = {one["kind"]: one for one in listed["items"]}
    assert list(kinds) == source_kinds()
    assert kinds["sqlite"]["host"] == "none"
    assert kinds["postgresql"]["port"] == 5432
    sslmode = kinds["postgresql"]["options_schema"]["properties"]["sslmode"]
    assert (sslmode["default"], "verify-full" in sslmode["enum"]) == ("prefer", True)
    assert kinds["trino"]["options_schema"]["properties"].keys() >= {"schema", "catalog"}


async def test_a_broken_package_hides_no_other_kind(api: Api, tmp_path: Path) -> None:
    built_in = source_kinds()
    with installed(tmp_path, "shoal.data_source_kinds", {"parrot": "nowhere:Parrot"}):
        listed = (await api.client.get(f"{PREFIX}/data-source-kinds")).json()
        answer = await api.client.put(path("strict", "wh"), json={**SERVER, "kind": "parrot"})
    assert [one["kind"] for one in listed["items"]] == built_in
    found = fields_of(problem_of(answer, 422, "invalid-request"))
    assert "cannot be loaded from nowhere:Parrot" in found["kind"]

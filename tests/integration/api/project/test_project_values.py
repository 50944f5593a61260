"""Parameters and secrets of projects: who sets them, and that no secret ever comes back."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
import structlog

from shoal.api.settings import ApiSettings
from shoal.runtime.settings import ClusterSettings
from shoal.runtime.vault import Vault, create_key
from tests.integration.api.conftest import PREFIX, Api, fields_of, in_process, opened, problem_of

pytestmark = pytest.mark.asyncio(loop_scope="module")

VALUE = 'hush\' "word" \\ ü\nsecond line'


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def api(module_cluster: ClusterSettings) -> AsyncIterator[Api]:
    """The API of this module, with a key for secrets."""
    create_key(module_cluster.secrets_key_file)
    async with opened(module_cluster, ApiSettings(port=0)) as services, in_process(services) as it:
        for project in ("team", "busy", "strict", "hidden", "gone"):
            await it.make(project)
        yield it


async def values(api: Api, path: str) -> dict[str, str]:
    """The parameters of a project by name."""
    listed = (await api.client.get(path)).json()["items"]
    return {one["name"]: one["value"] for one in listed}


# -- parameters ------------------------------------------------------------------------------------


async def test_parameters_are_set_changed_and_removed(api: Api) -> None:
    path = f"{PREFIX}/projects/team/parameters"
    for value, status in (("s3://one", 201), ("s3://${x}/$[yyyy]", 200)):
        answer = await api.client.put(f"{path}/bucket", json={"value": value})
        assert answer.status_code == status
        assert answer.json() == {"project": "team", "name": "bucket", "value": value}
    number = await api.client.put(f"{path}/limit", json={"value": 3})
    assert number.json()["value"] == "3"
    assert (await api.client.delete(f"{path}/limit")).status_code == 204
    assert await values(api, path) == {"bucket": "s3://${x}/$[yyyy]"}
    problem_of(await api.client.delete(f"{path}/limit"), 404, "not-found")


async def test_changes_of_different_parameters_at_the_same_time_are_all_kept(api: Api) -> None:
    path = f"{PREFIX}/projects/busy/parameters"
    names = [f"p{n}" for n in range(10)]
    await asyncio.gather(*(api.client.put(f"{path}/{n}", json={"value": n}) for n in names))
    assert await values(api, path) == {n: n for n in names}


@pytest.mark.parametrize(
    ("name", "value", "field", "words"),
    [
        ("a-b", "x", "name", "match pattern"),
        ("PATH", "x", "value", "reserved"),
        ("day", "$[nonsense(]", "value", "unknown function"),
        ("day", ["x"], "value", "valid string"),
        ("BUCKET", "x", "name", "only in case"),
    ],
)
async def test_bad_parameters_are_refused(
    api: Api, name: str, value: object, field: str, words: str
) -> None:
    path = f"{PREFIX}/projects/strict/parameters"
    await api.client.put(f"{path}/bucket", json={"value": "x"})
    answer = await api.client.put(f"{path}/{name}", json={"value": value})
    document = problem_of(answer, 422, "invalid-request")
    assert words in fields_of(document)[field]
    assert await values(api, path) == {"bucket": "x"}


async def test_unknown_project_has_no_values(api: Api) -> None:
    for kind in ("parameters", "secrets"):
        path = f"{PREFIX}/projects/nobody/{kind}"
        problem_of(await api.client.get(path), 404, "not-found")
        problem_of(await api.client.delete(f"{path}/x"), 404, "not-found")


# -- secrets ---------------------------------------------------------------------------------------


async def test_secret_is_set_and_listed_but_never_shown(api: Api) -> None:
    path = f"{PREFIX}/projects/hidden/secrets"
    with structlog.testing.capture_logs() as logs:
        first = await api.client.put(f"{path}/db", json={"value": VALUE})
        again = await api.client.put(f"{path}/db", json={"value": VALUE + "!"})
        listed = await api.client.get(path)
    assert (first.status_code, again.status_code) == (201, 200)
    assert first.json().keys() == {"name", "reference", "created_at", "updated_at"}
    assert again.json()["updated_at"] >= first.json()["updated_at"]
    assert listed.json() == {"items": [again.json()], "next": None}
    said = first.text + again.text + listed.text + str(logs)
    assert "word" not in said
    async with api.services.store.unit_of_work(read_only=True) as uow:
        stored = await uow.secrets.stored("hidden")
    assert "word" not in stored["db"].ciphertext
    assert (
        api.services.secret_values.vault.open("hidden", "db", stored["db"].ciphertext)
        == VALUE + "!"
    )


async def test_deleted_secret_is_gone(api: Api) -> None:
    path = f"{PREFIX}/projects/gone/secrets"
    await api.client.put(f"{path}/db", json={"value": VALUE})
    assert (await api.client.delete(f"{path}/db")).status_code == 204
    assert (await api.client.get(path)).json()["items"] == []
    problem_of(await api.client.delete(f"{path}/db"), 404, "not-found")


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("abc", "less than 4 characters"),
        ("  a  ", "less than 4 characters"),
        ("é" * 20_000, "more than 32,768 bytes"),
        (74321, "valid string"),
        ("word\0word", "NUL"),
    ],
)
async def test_bad_secrets_are_refused_without_being_repeated(
    api: Api, value: object, words: str
) -> None:
    answer = await api.client.put(f"{PREFIX}/projects/p/secrets/db", json={"value": value})
    assert answer.status_code == 422
    assert words in answer.text
    assert str(value)[:20] not in answer.text


async def test_name_of_a_secret_is_that_of_a_variable(api: Api) -> None:
    answer = await api.client.put(f"{PREFIX}/projects/p/secrets/a-b", json={"value": VALUE})
    problem_of(answer, 422, "invalid-request")


async def test_without_a_key_nothing_is_stored(
    api: Api, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    missing = Vault(tmp_path / "none.key")
    monkeypatch.setattr(api.services.secret_values.vault, "seal", missing.seal)
    answer = await api.client.put(f"{PREFIX}/projects/p/secrets/db", json={"value": VALUE})
    document = problem_of(answer, 503, "no-secrets-key")
    assert "none.key" in document["detail"]
    assert "secrets_key" in document["detail"]
    assert "word" not in answer.text

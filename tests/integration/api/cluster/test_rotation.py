"""Keys are rotated under load, cut off anywhere, and no value is lost."""

import asyncio
import base64
import os
from collections.abc import AsyncIterator, Collection, Iterator
from contextlib import contextmanager, suppress

import pytest
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from shoal.api.access.audit import Auditor
from shoal.api.operations.secrets.key_rotation import KeyRotation, RotationStep
from shoal.api.schemas.platform.secrets_keys import Phase
from shoal.api.settings import ApiSettings
from shoal.coordination.cluster import layout
from shoal.coordination.cluster.membership import Membership
from shoal.runtime.settings import ClusterSettings
from shoal.runtime.vault import Vault, create_key, key_of, password_of_source
from shoal.sql import UnitOfWork
from tests.integration.api.conftest import PREFIX, Api, in_process, opened

VALUES = {f"s{number}": f"value {number}" for number in range(7)}
PASSWORD = "a password"


@pytest.fixture
async def api(cluster: ClusterSettings, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Api]:
    """An API with some secrets."""
    monkeypatch.setattr(Auditor, "GATHER_S", 3600.0)
    create_key(cluster.secrets_key_file)
    async with opened(cluster, ApiSettings(port=0)) as services, in_process(services) as api:
        for name, value in VALUES.items():
            await put(api, name, value)
        source = {"kind": "mariadb", "host": "db", "port": 1, "user": "u", "password": PASSWORD}
        await api.client.put(f"{PREFIX}/projects/p/data-sources/wh", json=source)
        yield api


async def put(api: Api, name: str, value: str) -> None:
    answer = await api.client.put(f"{PREFIX}/projects/p/secrets/{name}", json={"value": value})
    assert answer.is_success, answer.text


async def stored(api: Api) -> dict[str, str]:
    async with api.services.store.unit_of_work(read_only=True) as uow:
        found = {n: one.ciphertext for n, one in (await uow.secrets.stored("p")).items()}
        source = await uow.data_sources.get("p", "wh")
    assert source.password.ciphertext is not None
    return {**found, password_of_source("wh"): source.password.ciphertext}


async def opened_by(api: Api, vault: Vault) -> dict[str, str]:
    """Return all values, as a process that starts now reads them."""
    return {name: vault.open("p", name, text) for name, text in (await stored(api)).items()}


def fresh(api: Api) -> Vault:
    return Vault(api.services.secret_values.vault.file.path)


async def ended(rotation: KeyRotation, *, begin: bool = True) -> RotationStep:
    done = await rotation.step(begin=begin)
    while done.phase is Phase.WORKING:
        done = await rotation.step(begin=False)
    return done


def rotation_of(api: Api) -> KeyRotation:
    """Return a rotation with small transactions."""
    return KeyRotation(api.services.store.database, fresh(api), api.services.cluster.masters, 3)


EXPECTED = {**VALUES, password_of_source("wh"): PASSWORD}


async def test_rotation_encrypts_all_anew_and_retires_the_old_key(api: Api) -> None:
    [old] = api.services.secret_values.vault.ids()
    done = await ended(rotation_of(api))
    assert (done.phase, done.retired) == (Phase.DONE, (old,))
    assert {key_of(one) for one in (await stored(api)).values()} == {done.key}
    assert fresh(api).ids() == [done.key]
    assert await opened_by(api, fresh(api)) == EXPECTED
    await put(api, "s0", "another value")
    assert key_of((await stored(api))["s0"]) == done.key
    again = await ended(rotation_of(api), begin=False)
    assert (again.phase, again.key) == (Phase.DONE, done.key), "nothing begins by itself"
    second = await ended(rotation_of(api))
    assert second.key not in (old, done.key)


async def test_ciphertexts_of_before_keys_had_ids_are_brought_along(api: Api) -> None:
    vault = fresh(api)
    async with api.services.store.unit_of_work() as uow:
        for name, value in VALUES.items():
            await uow.secrets.put(
                "p", name, sealed_as_before(vault, name, value), api.services.store.clock()
            )
        await uow.commit()
    assert await opened_by(api, fresh(api)) == EXPECTED
    assert (await rotation_of(api).state()).used[""] == len(VALUES)
    done = await ended(rotation_of(api))
    assert {key_of(one) for one in (await stored(api)).values()} == {done.key}
    assert await opened_by(api, fresh(api)) == EXPECTED


def sealed_as_before(vault: Vault, name: str, value: str) -> str:
    [key] = vault.file.keys().values()
    nonce = os.urandom(12)
    sealed = AESGCM(key).encrypt(nonce, value.encode(), f"p/{name}".encode())
    return "1:" + base64.b64encode(nonce + sealed).decode()


class Cut(BaseException):
    """The process has died here."""


@contextmanager
def cut_at(moment: int, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Let everything end at the n-th durable write, before it or behind it."""
    seen: list[str] = []
    commit, replace = UnitOfWork.commit, os.replace

    def passing(name: str) -> None:
        seen.append(name)
        if len(seen) == moment:
            raise Cut

    async def committing(self: UnitOfWork) -> None:
        passing("before commit")
        await commit(self)
        passing("behind commit")

    def replacing(source: object, target: object) -> None:
        passing("before replace")
        replace(source, target)  # type: ignore[arg-type]
        passing("behind replace")

    with monkeypatch.context() as patch:
        patch.setattr(UnitOfWork, "commit", committing)
        patch.setattr(os, "replace", replacing)
        yield seen


async def test_rotation_that_dies_at_any_write_goes_on_and_loses_nothing(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    moment, keys = 0, {fresh(api).first_key()}
    while True:
        moment += 1
        with cut_at(moment, monkeypatch) as seen, suppress(Cut):
            await ended(rotation_of(api))
        assert await opened_by(api, fresh(api)) == EXPECTED, seen[-1]
        await put(api, "s3", VALUES["s3"])  # with whichever key it is now
        if len(seen) < moment:
            break
        done = await ended(rotation_of(api))
        assert done.phase is Phase.DONE, seen
        assert await opened_by(api, fresh(api)) == EXPECTED, seen
        assert {key_of(one) for one in (await stored(api)).values()} == {fresh(api).first_key()}
        assert len(fresh(api).ids()) == 1, seen
        keys.add(done.key)
    assert moment > 12
    assert {"before replace", "behind replace", "before commit", "behind commit"} == set(seen)


async def test_values_that_are_set_during_a_rotation_are_the_ones_that_stay(api: Api) -> None:
    expected, stop = dict(EXPECTED), asyncio.Event()

    async def set_values() -> None:
        number = 0
        while not stop.is_set():
            number += 1
            name = f"s{number % len(VALUES)}"
            await put(api, name, f"set {number}")
            expected[name] = f"set {number}"

    setting = asyncio.create_task(set_values())
    for _ in range(3):
        assert (await ended(rotation_of(api))).phase is Phase.DONE
    stop.set()
    await setting
    assert await opened_by(api, fresh(api)) == expected
    assert {key_of(one) for one in (await stored(api)).values()} == set(fresh(api).ids())


async def test_value_that_was_set_meanwhile_is_not_overwritten(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between reading what is encrypted anew and storing it."""
    rotation = rotation_of(api)
    made_anew, is_set = rotation._made_anew, asyncio.Event()
    loop = asyncio.get_running_loop()

    def slowly(*given: object) -> object:
        made = made_anew(*given)  # type: ignore[arg-type]
        if not is_set.is_set():
            asyncio.run_coroutine_threadsafe(put(api, "s0", "newer"), loop).result()
            loop.call_soon_threadsafe(is_set.set)
        return made

    monkeypatch.setattr(rotation, "_made_anew", slowly)
    await ended(rotation)
    assert (await opened_by(api, fresh(api)))["s0"] == "newer"


async def test_value_sealed_before_a_rotation_is_not_stored_behind_it(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its key is retired when it is to be stored: it is sealed again."""
    vault, rotated = api.services.secret_values.vault, asyncio.Event()
    seal, loop = vault.seal, asyncio.get_running_loop()

    def slowly(*given: object) -> str:
        sealed = seal(*given)  # type: ignore[arg-type]
        if not rotated.is_set():
            asyncio.run_coroutine_threadsafe(ended(rotation_of(api)), loop).result()
            loop.call_soon_threadsafe(rotated.set)
        return sealed

    monkeypatch.setattr(vault, "seal", slowly)
    await put(api, "late", "a late value")
    assert (await opened_by(api, fresh(api)))["late"] == "a late value"
    assert {key_of(one) for one in (await stored(api)).values()} == set(fresh(api).ids())


async def test_value_that_the_old_key_encrypted_last_keeps_it_until_it_is_encrypted_anew(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    late = fresh(api).seal("p", "s0", "the last value")
    retire = KeyRotation._retire
    stored_for: list[str] = []

    async def stored_before(self: KeyRotation, key: str, old: Collection[str]) -> RotationStep:
        """Nothing was left to encrypt; a transaction that had begun before is committed now."""
        if not stored_for:
            stored_for.append(key)
            async with api.services.store.unit_of_work() as uow:
                await uow.secrets.put("p", "s0", late, api.services.store.clock())
                await uow.commit()
        return await retire(self, key, old)

    monkeypatch.setattr(KeyRotation, "_retire", stored_before)
    done = await ended(rotation_of(api))
    assert stored_for == [done.key]
    assert done.phase is Phase.DONE
    assert await opened_by(api, fresh(api)) == {**EXPECTED, "s0": "the last value"}


async def test_key_that_a_live_master_does_not_have_is_not_primary(api: Api) -> None:
    session, [old] = api.services.cluster.session, api.services.secret_values.vault.ids()
    async with Membership(session, layout.MASTERS, "far", {"keys": [old]}) as far:
        done = await ended(rotation_of(api))
        assert (done.phase, done.without_key) == (Phase.WAITING, ("far",))
        await put(api, "s0", VALUES["s0"])
        assert {key_of(one) for one in (await stored(api)).values()} == {old}
        await far.update({"keys": [old, done.key]})
        assert (await ended(rotation_of(api), begin=False)).phase is Phase.DONE
        async with Membership(session, layout.MASTERS, "older version", {}):
            again = await ended(rotation_of(api))
            assert "older version" in again.without_key


async def test_value_that_no_key_opens_keeps_its_key_and_is_named(api: Api) -> None:
    [old] = api.services.secret_values.vault.ids()
    async with api.services.store.unit_of_work() as uow:
        broken = f"2:{old}:AAAA"
        await uow.secrets.put("p", "broken", broken, api.services.store.clock())
        await uow.commit()
    done = await ended(rotation_of(api))
    assert (done.phase, done.unreadable) == (Phase.STUCK, ("p/broken",))
    assert old in fresh(api).ids()
    await put(api, "broken", "mended")
    assert (await ended(rotation_of(api))).phase is Phase.DONE
    assert (await opened_by(api, fresh(api)))["broken"] == "mended"


async def test_key_that_was_put_into_the_file_for_it_is_taken(api: Api) -> None:
    given = fresh(api).file.add(os.urandom(32))
    assert (await ended(rotation_of(api))).key == given


async def test_steps_over_rest_say_what_they_did_and_are_audited(api: Api) -> None:
    phases: list[str] = []
    body = {"begin": True}
    while not phases or phases[-1] == "working":
        answer = await api.client.post(f"{PREFIX}/secrets-keys/rotation", json=body)
        assert answer.status_code == 200, answer.text
        phases.append(answer.json()["phase"])
        body = {"begin": False}
    assert phases[-1] == "done"
    keys = (await api.client.get(f"{PREFIX}/secrets-keys")).json()
    assert keys["primary"] == answer.json()["key"]
    assert keys["used"] == {keys["primary"]: len(EXPECTED)}
    await api.services.access.auditor.settle()
    found = (await api.client.get(f"{PREFIX}/audit?action=secrets.rotate")).json()["items"]
    assert len(found) == len(phases)

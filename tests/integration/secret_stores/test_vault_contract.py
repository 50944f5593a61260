"""HashiCorp Vault by its published API: a contract test, against a server written from that.

It runs over TLS on loopback. The product itself is not there.
"""

import asyncio
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from shoal.runtime.secret_stores.errors import SecretRefused, SecretStoreError, StoreUnavailable
from shoal.runtime.secret_stores.hashicorp import Hashicorp, HashicorpSettings
from shoal.runtime.secret_stores.stores import AT_ONCE, SecretStores
from shoal.runtime.settings import ClusterSettings
from tests.support.servers.vault_server import (
    JWT,
    ROLE,
    ROOT_TOKEN,
    SECRET_ID,
    VaultServer,
    serving,
)
from tests.support.waiting import eventually

PATH = "shoal/p/db"
REFERENCE = f"vault:{PATH}#password"
VALUE = "correct horse battery"


@pytest.fixture
def vault(tmp_path: Path) -> Iterator[VaultServer]:
    with serving(tmp_path / "vault") as server:
        server.put(PATH, password=VALUE, port=5432, short="abc")
        yield server


@pytest.fixture
def token_file(tmp_path: Path) -> Path:
    return written(tmp_path / "token", ROOT_TOKEN)


def written(file: Path, text: str, mode: int = 0o600) -> Path:
    file.write_text(text + "\n")
    file.chmod(mode)
    return file


def stores(vault: VaultServer, **table: Any) -> SecretStores:
    whole = {
        "kind": "vault",
        "url": vault.url,
        "ca": str(vault.ca),
        "paths": ["shoal/{project}/"],
        "timeout_s": 20.0,
        **{name: str(one) if isinstance(one, Path) else one for name, one in table.items()},
    }
    return SecretStores.of(ClusterSettings(secret_stores={"vault": whole}))


async def test_field_is_read_with_a_token(vault: VaultServer, token_file: Path) -> None:
    assert await stores(vault, token_file=token_file).read("p", REFERENCE) == VALUE
    assert vault.seen == [("GET", f"/v1/secret/data/{PATH}")]


async def test_mount_and_namespace_are_those_of_the_settings(
    vault: VaultServer, token_file: Path
) -> None:
    vault.mount, vault.namespace = "team/kv", "org/team"
    opened = stores(vault, token_file=token_file, mount="team/kv", namespace="org/team")
    assert await opened.read("p", REFERENCE) == VALUE
    with pytest.raises(SecretRefused, match="no such path in team/kv"):
        await stores(vault, token_file=token_file, mount="team/kv").read("p", REFERENCE)


async def test_renewed_token_file_is_read_again(vault: VaultServer, token_file: Path) -> None:
    opened = stores(vault, token_file=token_file)
    vault.tokens = {"hvs.renewed": ("",)}
    with pytest.raises(SecretRefused, match="has denied it"):
        await opened.read("p", REFERENCE)
    written(token_file, "hvs.renewed")
    assert await opened.read("p", REFERENCE) == VALUE


class Clock:
    """Seconds that pass as a test likes."""

    def __init__(self) -> None:
        self.now_s = 1000.0

    def __call__(self) -> float:
        return self.now_s


def by_role(vault: VaultServer, tmp_path: Path, clock: Clock) -> Hashicorp:
    """A store that signs in as a role, and whose time is that of ``clock``."""
    settings = HashicorpSettings(
        kind="vault",
        url=vault.url,
        ca=vault.ca,
        role_id=ROLE,
        secret_id_file=written(tmp_path / "secret_id", SECRET_ID),
    )
    return Hashicorp("vault", settings, clock)


def test_role_signs_in_once_and_again_when_its_token_ends(
    vault: VaultServer, tmp_path: Path
) -> None:
    vault.lease_s, clock = 300, Clock()
    store = by_role(vault, tmp_path, clock)
    assert [store.read(PATH, "password") for _ in range(3)] == [VALUE] * 3
    clock.now_s += 199  # less than two thirds of what the token lasts
    assert store.read(PATH, "password") == VALUE
    assert vault.logins() == 1
    clock.now_s += 2
    assert store.read(PATH, "password") == VALUE
    assert vault.logins() == 2


def test_token_that_was_revoked_is_replaced_unless_it_is_new(
    vault: VaultServer, tmp_path: Path
) -> None:
    clock = Clock()
    store = by_role(vault, tmp_path, clock)
    assert store.read(PATH, "password") == VALUE
    vault.tokens.clear()
    with pytest.raises(SecretRefused):
        store.read(PATH, "password")
    assert vault.logins() == 1
    clock.now_s += 6
    assert store.read(PATH, "password") == VALUE
    assert vault.logins() == 2


async def test_denied_path_costs_no_sign_in_each_time(vault: VaultServer, tmp_path: Path) -> None:
    vault.role_may = ("other/",)
    secret_id = written(tmp_path / "secret_id", SECRET_ID)
    opened = stores(vault, role_id=ROLE, secret_id_file=secret_id)
    for _ in range(3):
        with pytest.raises(SecretRefused, match=r"allow `read` of secret/data/shoal/p/db"):
            await opened.read("p", REFERENCE)
    assert vault.logins() == 1


async def test_pod_signs_in_by_its_service_account(vault: VaultServer, tmp_path: Path) -> None:
    jwt = written(tmp_path / "jwt", JWT, 0o644)  # as kubelets mount it
    opened = stores(vault, kubernetes_role="shoal", service_account_token=jwt)
    assert await opened.read("p", REFERENCE) == VALUE
    assert vault.seen[0] == ("POST", "/v1/auth/kubernetes/login")


@pytest.mark.parametrize(
    ("reference", "words"),
    [
        ("vault:shoal/p/none#password", "there is no such path in secret; it is written without"),
        (f"vault:{PATH}#user", "vault:shoal/p/db has no field user"),
        (f"vault:{PATH}#port", "is not text; store it as one"),
        (f"vault:{PATH}#short", "cannot be a secret: it has less than 4"),
        ("vault:shoal/p/gone#password", "its newest version was deleted"),
    ],
)
async def test_what_is_not_there_is_refused_for_good(
    vault: VaultServer, token_file: Path, reference: str, words: str
) -> None:
    vault.put("shoal/p/gone", password=VALUE)
    vault.secrets["shoal/p/gone"].is_deleted = True
    with pytest.raises(SecretRefused, match=words) as raised:
        await stores(vault, token_file=token_file).read("p", reference)
    assert not raised.value.retriable
    assert VALUE not in str(raised.value)


async def test_path_without_a_field_is_refused_before_anything_is_asked(
    vault: VaultServer, token_file: Path
) -> None:
    with pytest.raises(SecretStoreError, match="needs the field"):
        await stores(vault, token_file=token_file).read("p", f"vault:{PATH}")
    assert vault.seen == []


@pytest.mark.parametrize(
    ("status", "errors", "words"),
    [
        (503, ["Vault is sealed"], "it is sealed"),
        (503, [], "it answers with 503"),
        (500, ["1 error occurred"], "it answers with 500"),
        (502, [], "it answers with 502"),
        (429, ['request path "x": rate limit quota exceeded'], "it answers with 429"),
        (412, ["required index state not present"], "it answers with 412"),
        (472, [], "it answers with 472"),
        (473, [], "it answers with 473"),
    ],
)
async def test_bad_days_pass(
    vault: VaultServer, token_file: Path, status: int, errors: list[str], words: str
) -> None:
    vault.status, vault.errors, vault.retry_after = status, errors, "7"
    opened = stores(vault, token_file=token_file)
    with pytest.raises(StoreUnavailable, match=words) as raised:
        await opened.read("p", REFERENCE)
    assert raised.value.retriable
    assert raised.value.pause_s == 7
    vault.status = 0
    assert await opened.read("p", REFERENCE) == VALUE


async def test_sign_in_that_is_refused_says_where(vault: VaultServer, tmp_path: Path) -> None:
    secret_id = written(tmp_path / "secret_id", "wrong-secret-id")
    opened = stores(vault, role_id=ROLE, secret_id_file=secret_id)
    with pytest.raises(
        SecretRefused, match=r"the role .* sign in at auth/approle \(400\)"
    ) as raised:
        await opened.read("p", REFERENCE)
    assert "wrong-secret-id" not in str(raised.value)


async def test_credential_that_others_may_read_is_not_used(
    vault: VaultServer, token_file: Path
) -> None:
    written(token_file, ROOT_TOKEN, 0o644)
    with pytest.raises(SecretRefused, match=r"others may read .*chmod 600"):
        await stores(vault, token_file=token_file).read("p", REFERENCE)
    assert vault.seen == []


async def test_token_goes_nowhere_else(
    vault: VaultServer, token_file: Path, tmp_path: Path
) -> None:
    with serving(tmp_path / "other") as other:
        other.put(PATH, password="from elsewhere")
        vault.status, vault.redirect = 307, other.url
        with pytest.raises(StoreUnavailable, match=r"leads elsewhere \(127.0.0.1:\d+\), where no"):
            await stores(vault, token_file=token_file).read("p", REFERENCE)
        assert other.seen == []


async def test_server_that_another_authority_has_signed_gets_no_token(
    vault: VaultServer, token_file: Path, tmp_path: Path
) -> None:
    with serving(tmp_path / "other") as other:
        opened = stores(vault, token_file=token_file, ca=other.ca)
        with pytest.raises(
            StoreUnavailable, match=r"cannot be reached: .*CERTIFICATE_VERIFY_FAILED"
        ):
            await opened.read("p", REFERENCE)
    by_name = stores(vault, token_file=token_file, url=vault.url.replace("127.0.0.1", "localhost"))
    with pytest.raises(StoreUnavailable, match=r"cannot be reached: .*[Hh]ostname mismatch"):
        await by_name.read("p", REFERENCE)
    assert vault.shown == []


async def test_proxy_of_the_environment_is_not_used(
    vault: VaultServer, token_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:1")
    monkeypatch.setenv("SSL_CERT_FILE", "/nowhere")
    assert await stores(vault, token_file=token_file).read("p", REFERENCE) == VALUE


@pytest.mark.parametrize("how", ["silence_s", "drip_s"])
async def test_whole_look_has_one_limit(vault: VaultServer, token_file: Path, how: str) -> None:
    # A silent server answers well at last, and one that drips never ends.
    setattr(vault, how, 0.1 if how == "drip_s" else 30.0)
    with pytest.raises(StoreUnavailable, match="has not answered within"):
        await stores(vault, token_file=token_file, timeout_s=1.0).read("p", REFERENCE)


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        (b"x" * (2 << 20), "answers without an end"),
        (b"<html>a proxy</html>", "no JSON object"),
        (b"[1]", "no JSON object"),
        (b"[" * 100_000, "no JSON object"),
    ],
)
async def test_answers_that_no_vault_gives_are_errors(
    vault: VaultServer, token_file: Path, raw: bytes, words: str
) -> None:
    vault.raw = raw
    with pytest.raises(StoreUnavailable, match=words):
        await stores(vault, token_file=token_file).read("p", REFERENCE)


async def test_answer_of_another_engine_is_refused(vault: VaultServer, token_file: Path) -> None:
    vault.raw = b'{"data": {"password": "a first version"}}'
    with pytest.raises(SecretRefused, match="as no key-value engine of version 2 does") as raised:
        await stores(vault, token_file=token_file).read("p", REFERENCE)
    assert "a first version" not in str(raised.value)


async def test_server_that_is_not_there_is_unavailable(
    vault: VaultServer, token_file: Path
) -> None:
    with pytest.raises(StoreUnavailable, match="cannot be reached"):
        await stores(vault, token_file=token_file, url="https://127.0.0.1:1").read("p", REFERENCE)


async def test_few_looks_are_under_way_at_once(vault: VaultServer, token_file: Path) -> None:
    vault.silence_s = 0.05
    opened = stores(vault, token_file=token_file)
    found = await asyncio.gather(*(opened.read("p", REFERENCE) for _ in range(20)))
    assert found == [VALUE] * 20
    assert vault.most_at_once == AT_ONCE


async def test_threads_end_with_the_time_of_a_look(vault: VaultServer, token_file: Path) -> None:
    vault.drip_s = 1.5  # longer than ``eventually`` waits for the whole answer
    with pytest.raises(StoreUnavailable):
        await stores(vault, token_file=token_file, timeout_s=1.0).read("p", REFERENCE)
    await eventually(
        lambda: not [one for one in threading.enumerate() if one.name == "secret store"]
    )

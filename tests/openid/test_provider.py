"""Signing in at a provider that others have written: the way through its own pages."""

import json
import re
import subprocess
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urljoin, urlsplit

import httpx
import pytest

from shoal.api.access.sessions import COOKIE
from shoal.api.settings import ApiSettings
from shoal.client.local.zookeeper import free_port
from shoal.runtime.settings import ClusterSettings
from tests.integration.api.access.people import browser
from tests.integration.api.conftest import PREFIX, Api, cluster, in_process, opened
from tests.support.waiting import DEADLINE_S

__all__ = ["cluster"]  # a fixture

PROGRAM = Path(__file__).parents[2] / "build" / "openid"  # with what npm has fetched
SECRET = "the secret of the client, of 43 characters at least"
BACK = "https://localhost/api/v1/login/oidc/main/callback"


@pytest.fixture(params=["confidential", "public"])
def has_secret(request: pytest.FixtureRequest) -> bool:
    """Whether the provider knows us by a secret."""
    return bool(request.param == "confidential")


@pytest.fixture
def issuer(has_secret: bool) -> Iterator[str]:
    """A running provider."""
    port = free_port()
    known = {"client_secret": SECRET} if has_secret else {"token_endpoint_auth_method": "none"}
    client = {
        "client_id": "shoal",
        "redirect_uris": [BACK],
        "post_logout_redirect_uris": ["https://localhost"],
        **known,
    }
    settings = {"port": port, "clients": [client], "groups": {"ada": ["staff"]}}
    process = subprocess.Popen(
        ["node", "provider.mjs"],
        cwd=PROGRAM,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        process.stdin.write(json.dumps(settings) + "\n")
        process.stdin.flush()
        assert process.stdout.readline() == "ready\n"
        yield f"http://127.0.0.1:{port}"
    finally:
        process.kill()
        process.communicate()


@dataclass
class World:
    """An API that knows the provider."""

    api: Api
    issuer: str

    async def sign_in(self, name: str) -> httpx.Response:
        """Go the whole way of a person with a browser; return the last answer."""
        ours = self.api.client._transport
        async with (
            httpx.AsyncClient(transport=ours, base_url="https://localhost") as here,
            httpx.AsyncClient(trust_env=False, timeout=DEADLINE_S) as there,
        ):
            begun = await here.get(f"{PREFIX}/login/oidc/main")
            assert begun.status_code == 303, begun.text
            answer = await there.get(begun.headers["location"])
            for _ in range(10):
                while answer.is_redirect:
                    to = urljoin(str(answer.url), answer.headers["location"])
                    if to.startswith("https://localhost/"):
                        parts = urlsplit(to)
                        return await here.get(f"{parts.path}?{parts.query}")
                    answer = await there.get(to)
                action, fields = _form(answer, name)
                answer = await there.post(action, data=fields)
        raise AssertionError(answer.text)


def _form(page: httpx.Response, name: str) -> tuple[str, dict[str, str]]:
    assert page.status_code == 200, page.text
    action = re.findall(r'<form[^>]*action="([^"]+)"', page.text)[0]
    prompt = re.findall(r'name="prompt" value="([^"]+)"', page.text)[0]
    fields = {"prompt": prompt, "login": name, "password": "any"}
    return urljoin(str(page.url), action), fields


@pytest.fixture
async def world(
    cluster: ClusterSettings,
    issuer: str,
    has_secret: bool,
    tmp_path: Path,
) -> AsyncIterator[World]:
    """An API for one test."""
    secret = tmp_path / "secret"
    secret.write_text(SECRET)
    secret.chmod(0o600)
    main = {
        "issuer": issuer,
        "client_id": "shoal",
        "client_secret_file": str(secret) if has_secret else "",
        "make_accounts": True,
        "groups_claim": "groups",
        "groups": {"staff": "analysts"},
        "timeout_s": 60,
    }
    settings = ApiSettings.model_validate(
        {"port": 0, "public_url": "https://localhost", "oidc": {"main": main}}
    )
    async with opened(cluster, settings) as services, in_process(services) as api:
        await api.client.post(f"{PREFIX}/groups", json={"name": "analysts"})
        yield World(api, issuer)


async def test_people_sign_in_and_are_known_again(world: World) -> None:
    for name in ("ada", "bob", "ada"):
        answer = await world.sign_in(name)
        assert answer.status_code == 200, answer.text
        async with httpx.AsyncClient(
            transport=world.api.client._transport, base_url="https://localhost"
        ) as client:
            me = await client.get(f"{PREFIX}/me", headers=browser(answer.cookies[COOKIE]))
        assert me.json()["name"] == f"{name}@people"
    user = (await world.api.client.get(f"{PREFIX}/users/ada@people")).json()
    assert (user["issuer"], user["subject"]) == (world.issuer, "ada")
    group = (await world.api.client.get(f"{PREFIX}/groups/analysts")).json()
    assert group["members"] == ["ada@people"]
    left = await world.api.client.get(f"{PREFIX}/login/oidc/main/logout")
    async with httpx.AsyncClient(trust_env=False, timeout=DEADLINE_S) as client:
        page = await client.get(left.headers["location"])
    assert page.status_code == 200, "it knows us, and the way back"

"""``shoal login --oidc``: the command, a browser, an API that listens, and a provider."""

import asyncio
import re
import threading
import webbrowser
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest

from shoal.api.main import serve_app
from shoal.api.server import listening
from shoal.api.services import Services
from shoal.api.settings import ApiSettings
from shoal.client.cli import run
from shoal.client.local.zookeeper import free_port
from shoal.client.rest.access import loopback
from shoal.runtime.settings import ClusterSettings
from tests.integration.api.conftest import opened
from tests.support.servers.openid_provider import CLIENT, OpenIdProvider, openid_provider


@dataclass
class World:
    """Where the API listens. ``command`` runs a command line."""

    url: str
    services: Services
    provider: OpenIdProvider
    capfd: pytest.CaptureFixture[str]

    async def command(self, *arguments: str) -> tuple[int, str, str]:
        """Return status, output and messages."""
        self.capfd.readouterr()
        status = await asyncio.to_thread(run, arguments)
        out, err = self.capfd.readouterr()
        return status, out, err


@pytest.fixture
async def world(
    cluster: ClusterSettings,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> AsyncIterator[World]:
    """Everything but the browser, and an empty home."""
    for name in ("SHOAL_DATA", "SHOAL_URL", "SHOAL_TOKEN", "SHOAL_CA", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "home").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path / "home")
    async with openid_provider() as provider:
        provider.secret = None  # a public client
        port = free_port()
        main = {"issuer": provider.issuer, "client_id": CLIENT, "make_accounts": True}
        url = f"http://127.0.0.1:{port}"
        settings = ApiSettings.model_validate(
            {"port": port, "public_url": url, "oidc": {"main": main}}
        )
        ready = asyncio.Event()
        async with opened(cluster, settings) as services:
            with listening(settings) as listener:
                served = serve_app(services, listener, lambda _: ready.set())
                task = asyncio.create_task(served)
                await ready.wait()
                yield World(url, services, provider, capfd)
                services.streams.stopping.set()
                await task


def browse(world: World, address: str, shown: list[str]) -> None:
    """Do what a browser and its person do, up to the link to the command."""
    with httpx.Client(trust_env=False, timeout=60) as client:
        begun = client.get(address)
        assert begun.status_code == 303, begun.text
        cookie = begun.headers["set-cookie"].partition(";")[0]
        found = world.provider.sign_in(
            begun.headers["location"], "sub-ada", preferred_username="ada"
        )
        end = f"{world.url}/api/v1/login/oidc/main/callback"
        page = client.get(end, params=found, headers={"Cookie": cookie})
        assert page.status_code == 200, page.text
        shown.append(re.findall(r"<b>(\d{6})</b>", page.text)[0])
        [to] = re.findall(r'href="([^"]+)"', page.text)
        back = to.replace("&amp;", "&")
        # Another program of this machine is there first, with a state that it has made up.
        code = parse_qs(urlsplit(back).query)["code"][0]
        port = urlsplit(back).port
        for target in (f"/?code={code}&state=guessed", "/", "/?code=a&code=b&state=c", "/favicon"):
            assert client.get(f"http://127.0.0.1:{port}{target}").status_code == 404
        assert client.get(back).status_code == 200


async def test_browser_signs_the_command_line_in(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown: list[str] = []
    browsers: list[threading.Thread] = []

    def open_browser(address: str, *_: Any) -> bool:
        thread = threading.Thread(target=browse, args=(world, address, shown))
        browsers.append(thread)
        thread.start()
        return True

    monkeypatch.setattr(webbrowser, "open", open_browser)
    status, out, err = await world.command("login", world.url, "--oidc")
    for thread in browsers:
        thread.join()
    assert status == 0, err
    assert "shoal_pat_" not in out + err
    assert f"it shows the number {shown[0]}:" in err
    assert f"signed in to {world.url} as ada" in err
    kept = (Path.home() / ".config/shoal/credentials.json").read_text()
    assert "shoal_pat_" in kept
    status, out, err = await world.command("whoami")
    assert f"ada at {world.url}\nby the token of `shoal login`" in out, err
    async with world.services.store.unit_of_work(read_only=True) as uow:
        ada = await uow.principals.get("ada")
        assert await uow.sessions.list(ada.id, world.services.store.clock()) == [], "it has ended"
    status, _, err = await world.command("passwd")
    assert status == 1
    assert f"signs in at {world.provider.issuer}" in err

    monkeypatch.setenv("SHOAL_URL", world.url)
    monkeypatch.setenv("SHOAL_TOKEN", world.services.token)
    _, out, _ = await world.command("user", "show", "ada")
    assert f"signs in at {world.provider.issuer}\nas sub-ada\n" in out
    status, _, err = await world.command("user", "unlink", "ada")
    assert status == 0
    assert "reset-password ada" in err
    link = ("user", "link", "ada", world.provider.issuer, "sub-2")
    assert (await world.command(*link))[0] == 0
    monkeypatch.delenv("SHOAL_TOKEN")
    monkeypatch.delenv("SHOAL_URL")
    assert (await world.command("whoami"))[0] == 4, "unlinking has revoked the token"


async def test_what_cannot_be_done_is_told(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(webbrowser, "open", lambda *_: False)
    monkeypatch.setattr("shoal.client.cli.access.sign_in._MOST_S", 0.0)
    status, _, err = await world.command("login", world.url, "--oidc")
    assert status == 1
    assert "no sign-in within" in err
    status, _, err = await world.command("login", world.url, "--oidc", "--provider", "other")
    assert (status, "no provider 'other'; it has: main" in err) == (1, True)
    status, _, err = await world.command("login", world.url, "--oidc", "--name", "ada")
    assert (status, "--provider belongs to --oidc" in err) == (2, True)


def test_address_says_nothing_of_the_verifier() -> None:
    with loopback.Loopback() as one:
        assert one.verifier not in one.address("https://shoal.example", "main")

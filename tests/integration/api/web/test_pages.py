"""The UI's pages as the API serves them: policy, caching, and what is not a page."""

import gzip
import re
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest
from fastapi import FastAPI

from shoal.api.pages.ui import FOREVER, NONCE, Pages
from tests.integration.api.conftest import PREFIX, Api, problem_of
from tests.support.cases import each_row

BROWSER = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"}


@pytest.fixture
def built(tmp_path: Path) -> Path:
    """A folder as the build leaves it."""
    assets = tmp_path / "assets"
    assets.mkdir()
    (tmp_path / "index.html").write_text(f'<link nonce="{NONCE}"><p>the page')
    (assets / "index-abc123.js").write_text("plain")
    (assets / "index-abc123.js.gz").write_bytes(gzip.compress(b"packed"))
    (tmp_path / "secret.js").write_text("not an asset")
    return tmp_path


@pytest.fixture
async def client(built: Path) -> AsyncIterator[httpx.AsyncClient]:
    """A client of an application that has these pages alone."""
    app = FastAPI(openapi_url=None)
    Pages(built).install(app)
    transport = httpx.ASGITransport(app)
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as found:
        yield found


@each_row("path", ["/", "/projects/p/workflows/load.eu", "/runs/17", "/apis"])
async def test_page_has_a_strict_policy_with_a_nonce_of_its_own(
    client: httpx.AsyncClient, path: str
) -> None:
    nonces = set()
    for _ in range(2):
        answer = await client.get(path, headers=BROWSER)
        assert answer.status_code == 200
        assert answer.headers["cache-control"] == "no-cache"
        policy = answer.headers["content-security-policy"]
        scripts = re.search(r"script-src ([^;]*)", policy)
        assert scripts is not None
        assert scripts[1] == "'self'"
        assert "default-src 'none'" in policy
        assert "frame-ancestors 'none'" in policy
        found = re.search(r"style-src-elem 'self' 'nonce-([^']*)'", policy)
        assert found is not None
        assert f'nonce="{found[1]}"' in answer.text
        assert NONCE not in answer.text
        nonces.add(found[1])
    assert len(nonces) == 2


async def test_files_with_a_digest_are_kept_for_good_and_come_packed(
    client: httpx.AsyncClient,
) -> None:
    packed = await client.get("/assets/index-abc123.js", headers={"Accept-Encoding": "gzip, br"})
    assert packed.text == "packed"
    assert packed.headers["cache-control"] == FOREVER
    assert packed.headers["content-type"].startswith("text/javascript")
    plain = await client.get("/assets/index-abc123.js", headers={"Accept-Encoding": "identity"})
    assert plain.text == "plain"
    assert plain.headers["vary"] == "Accept-Encoding"


@each_row("name", ["..%2Fsecret.js", "missing-1.js", "index-abc123.js.gz", "a%00.js"])
async def test_other_files_are_not_served(client: httpx.AsyncClient, name: str) -> None:
    answer = await client.get(f"/assets/{name}", headers=BROWSER)
    assert answer.status_code in (200, 404)
    assert "not an asset" not in answer.text
    assert answer.headers.get("cache-control") != FOREVER


async def test_checkout_without_pages_says_the_command(tmp_path: Path) -> None:
    app = FastAPI(openapi_url=None)
    Pages(tmp_path).install(app)
    transport = httpx.ASGITransport(app)
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
        answer = await client.get("/", headers=BROWSER)
    assert answer.status_code == 503
    assert "make ui" in answer.text


@each_row(
    "method, path, headers",
    [
        ("GET", f"{PREFIX}/nothing", BROWSER),
        ("GET", "/api", BROWSER),
        ("GET", "/api/v2/instances", BROWSER),
        ("POST", "/projects", BROWSER),
        ("POST", f"{PREFIX}/nothing", BROWSER),
        ("GET", "/nothing", {"Accept": "*/*"}),
        ("GET", "/nothing", {"Accept": "application/json"}),
    ],
)
async def test_what_is_no_page_stays_a_problem(
    api: Api, method: str, path: str, headers: dict[str, str]
) -> None:
    answer = await api.client.request(method, path, headers=headers)
    problem_of(answer, 404, "no-such-route")


async def test_method_that_a_route_does_not_have_is_still_said(api: Api) -> None:
    answer = await api.client.put(f"{PREFIX}/instances", headers=BROWSER)
    problem_of(answer, 405, "method-not-allowed")

"""The process: what it listens on, which token it takes, how it ends."""

import asyncio
import json
import os
import signal
import socket
import sqlite3
import ssl
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing, suppress
from dataclasses import replace
from pathlib import Path

import httpx
import pytest

from shoal.api.access.tokens import ensure_token
from shoal.api.app import create_app
from shoal.api.main import serve, serve_app
from shoal.api.server import listening
from shoal.api.services import Services
from shoal.api.settings import ApiSettings
from shoal.api.web.errors import (
    AddressInUse,
    BadCertificate,
    BadToken,
    ClearBeyondLoopback,
    NoAllowedHosts,
    NotAnAddress,
)
from shoal.coordination import CredentialRefused, SessionState
from shoal.proto.tls import TlsFiles
from shoal.runtime.folder_identity import FolderIdentity
from shoal.runtime.limits.memory_shortage import EXIT_NO_MEMORY
from shoal.runtime.settings import ClusterSettings
from tests.integration.api.conftest import PREFIX, Api
from tests.integration.api.sse_reader import stream
from tests.support.waiting import DEADLINE_S


@asynccontextmanager
async def served(
    cluster: ClusterSettings, settings: ApiSettings
) -> AsyncIterator[tuple[httpx.AsyncClient, "asyncio.Task[None]"]]:
    """Serve; yield a client with the token, and the server's task."""
    url: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    task = asyncio.create_task(serve(settings, cluster, ready=url.set_result))
    try:
        task.add_done_callback(lambda _: url.done() or url.cancel())
        base_url = await url
        headers = {"Authorization": f"Bearer {cluster.token_file.read_text().strip()}"}
        async with httpx.AsyncClient(
            base_url=base_url, headers=headers, timeout=DEADLINE_S, trust_env=False
        ) as client:
            yield client, task
    finally:
        task.cancel()
        await asyncio.wait({task})


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_a_signal_ends_open_streams_and_then_the_process(
    cluster: ClusterSettings, settings: ApiSettings, number: signal.Signals
) -> None:
    # Nothing is under way at the end, so nobody waits for these.
    settings = settings.model_copy(update={"shutdown_grace_s": 3600.0})
    async with served(cluster, settings) as (client, task):
        async with stream(client, f"{PREFIX}/events") as reader:
            os.kill(os.getpid(), number)
            last = await reader.next(comments=True)
            assert last is not None
            assert "the server stops" in last.comment
            assert await reader.next() is None
            await asyncio.wait_for(task, DEADLINE_S)
        with pytest.raises(httpx.ConnectError):
            await client.get(f"{PREFIX}/health/live")


async def test_a_refused_credential_ends_the_process(services: Services) -> None:
    """No later request of this session would work, so a supervisor has to start it anew."""
    with listening(services.settings) as listener:
        task = asyncio.create_task(serve_app(services, listener))
        services.cluster.session._take_state(SessionState.LOST, 0, True)
        with pytest.raises(CredentialRefused):
            await asyncio.wait_for(task, DEADLINE_S)


async def test_a_new_token_is_made_for_the_owner_alone(
    cluster: ClusterSettings, settings: ApiSettings
) -> None:
    async with served(cluster, settings) as (client, _):
        assert cluster.token_file.stat().st_mode & 0o777 == 0o600
        assert (await client.get(f"{PREFIX}/health")).status_code == 200
    token = cluster.token_file.read_text()
    assert ensure_token(cluster.token_file) == token.strip()


@pytest.mark.parametrize(
    ("content", "mode", "message"),
    [
        ("", 0o600, "holds no token"),
        ("short", 0o600, "holds no token"),
        ("with a line\nbreak and more", 0o600, "holds no token"),
        ("x" * 40, 0o644, "chmod 600"),
        ("x" * 40, 0o660, "chmod 600"),
    ],
)
def test_token_files_that_protect_nothing(
    tmp_path: Path, content: str, mode: int, message: str
) -> None:
    file = tmp_path / "token"
    file.write_text(content)
    file.chmod(mode)
    with pytest.raises(BadToken, match=message):
        ensure_token(file)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1"])
async def test_nothing_goes_in_clear_beyond_loopback(cluster: ClusterSettings, host: str) -> None:
    with pytest.raises(ClearBeyondLoopback, match="tls_certificate and tls_key"):
        await serve(ApiSettings(host=host, port=0), cluster)
    with pytest.raises(NoAllowedHosts, match="allowed_hosts"):
        await serve(ApiSettings(host=host, port=0, allow_clear=True), cluster)
    assert not cluster.token_file.exists()


async def test_first_password_is_in_a_private_file_and_in_no_log(
    cluster: ClusterSettings, capfd: pytest.CaptureFixture[str]
) -> None:
    left = cluster.data / "first-admin-password"
    left.write_text("of an earlier database")
    left.chmod(0o644)
    for start in ("first", "second"):
        async with served(cluster, ApiSettings(port=0)) as (client, _):
            file = cluster.data / "first-admin-password"
            password = file.read_text().strip()
            assert file.stat().st_mode & 0o777 == 0o600
            if start == "first":
                answer = await client.post(
                    f"{PREFIX}/login", json={"name": "admin", "password": password}
                )
                assert answer.status_code == 204
                assert answer.headers["set-cookie"].startswith("__Host-shoal=")
        told = capfd.readouterr()
        assert password not in told.out + told.err
        assert (str(file) in told.out) is (start == "first")


@pytest.mark.parametrize("host", ["example.org", ""])
async def test_names_are_no_addresses(cluster: ClusterSettings, host: str) -> None:
    with pytest.raises(NotAnAddress, match="give an address of this machine"):
        await serve(ApiSettings(host=host, port=0), cluster)


async def test_a_certificate_that_cannot_be_used_is_told_before_anything_is_opened(
    cluster: ClusterSettings, tmp_path: Path
) -> None:
    tls = TlsFiles.of(cluster)
    for key in (tmp_path / "none.key", tls.cert):
        settings = ApiSettings(port=0, tls_certificate=tls.cert, tls_key=key)
        with pytest.raises(BadCertificate, match=r"PEM files that belong together"):
            await serve(settings, cluster)


async def test_role_with_a_certificate_encrypts_connections(cluster: ClusterSettings) -> None:
    # A process, not serve(): a role has another event loop than the tests.
    tls = TlsFiles.of(cluster)
    role = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "shoal.client.local.roles", "api", "--data", str(cluster.data)),
        *("--set", "port=0", "--set", f"tls_certificate={tls.cert}", "--set", f"tls_key={tls.key}"),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        env={
            **os.environ,
            "SHOAL_ZOOKEEPER": cluster.zookeeper,
            "SHOAL_PARTITIONS": str(cluster.partitions),
            "SHOAL_LOG_FORMAT": "json",
        },
    )
    assert role.stdout is not None
    try:
        line = b""
        async with asyncio.timeout(DEADLINE_S):
            while b'"api ready"' not in line:
                line = await role.stdout.readline()
                assert line, "the role has ended"
        address = json.loads(line)["url"]
        assert address.startswith("https://127.0.0.1:")
        trusted = ssl.create_default_context(cafile=tls.ca)
        async with httpx.AsyncClient(verify=trusted, timeout=DEADLINE_S, trust_env=False) as client:
            answer = await client.get(f"{address}/api/v1/health/live")
            assert answer.json() == {"status": "ok"}
            assert answer.headers["strict-transport-security"] == "max-age=31536000"
            with pytest.raises(httpx.RemoteProtocolError):
                await client.get(f"{address.replace('https', 'http')}/api/v1/health/live")
    finally:
        with suppress(ProcessLookupError):  # it has ended by itself
            role.terminate()
        await role.communicate()
    assert role.returncode == 0


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("localhost", 200),
        ("LOCALHOST:8765", 200),
        ("127.0.0.1:1", 200),
        ("[::1]:8765", 200),
        ("shoal.example.org", 200),
        ("evil.example.org", 421),
        ("localhost.evil.example.org", 421),
        ("localhost:80@evil.example.org", 421),
        ("127.0.0.1.nip.io", 421),
        ("", 421),
    ],
)
async def test_requests_for_other_names_are_refused(
    services: Services, host: str, status: int
) -> None:
    settings = services.settings.model_copy(update={"allowed_hosts": ("Shoal.example.org",)})
    app = create_app(replace(services, settings=settings))
    async with httpx.AsyncClient(
        transport=httpx.ASGITransport(app), base_url="http://localhost"
    ) as client:
        answer = await client.get("/api/v1/health/live", headers={"Host": host})
    assert answer.status_code == status
    if status == 421:
        assert answer.json()["type"] == "/problems/unknown-host"
        assert answer.headers["cache-control"] == "no-store"


async def test_requests_for_another_data_folder_are_refused_and_learn_nothing_without_its_token(
    services: Services, tmp_path: Path
) -> None:
    own, other = FolderIdentity.of(services.data), FolderIdentity.of(tmp_path.parent)
    right = {"Authorization": f"Bearer {services.token}"}
    app = create_app(services)
    async with httpx.AsyncClient(
        transport=httpx.ASGITransport(app), base_url="http://localhost/api/v1"
    ) as client:
        for folder, headers, status in (
            (own, right, 200),
            (other, right, 421),
            (other, {"Authorization": "Bearer wrong"}, 401),
            (other, {}, 401),
            ("nonsense", right, 200),
        ):
            answer = await client.get(
                "/projects", headers={**headers, "Shoal-Data-Folder": str(folder)}
            )
            assert answer.status_code == status, folder
            assert (str(services.data) in answer.text) is (status == 421)
    assert own is not None
    assert not own.is_same(FolderIdentity.from_text(str(other)) or own)


async def test_a_taken_port_is_named(cluster: ClusterSettings) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(AddressInUse, match=f"127.0.0.1:{port}.*already in use"):
            await serve(ApiSettings(port=port), cluster)


def test_small_answers_are_sent_without_delay(settings: ApiSettings) -> None:
    with listening(settings) as listener:
        assert listener.proto == socket.IPPROTO_TCP  # or asyncio leaves 40 ms of Nagle's delay


async def test_without_zookeeper_a_signal_ends_the_start(
    cluster: ClusterSettings, settings: ApiSettings
) -> None:
    lonely = cluster.model_copy(update={"zookeeper": "127.0.0.1:1"})
    database = cluster.data / "shoal.db"
    database.unlink()  # when it is there again, signals are heeded
    task = asyncio.create_task(serve(settings, lonely))
    async with asyncio.timeout(DEADLINE_S):
        while not database.exists():
            await asyncio.sleep(0.01)
    os.kill(os.getpid(), signal.SIGTERM)
    async with asyncio.timeout(DEADLINE_S):
        await task


async def test_requests_over_a_real_socket(cluster: ClusterSettings, settings: ApiSettings) -> None:
    async with served(cluster, settings) as (client, _):
        answer = await client.get(f"{PREFIX}/workflows")
        assert answer.json() == {"items": [], "next": None}
        assert "server" not in answer.headers
        huge = await client.put(
            f"{PREFIX}/projects/p",
            content=b"x" * (9 * 1024 * 1024),
            headers={"Content-Type": "application/json"},
        )
        assert huge.status_code == 413
        assert (await client.get(f"{PREFIX}/health/live")).status_code == 200
        with closing(sqlite3.connect(cluster.data / "shoal.db")) as connection:
            [count] = connection.execute("SELECT count(*) FROM partition").fetchone()
        assert count == cluster.partitions


@pytest.mark.parametrize("head", [b"GET /", b"GET / HTTP/1.1\r\nx: ", b"GET / HTTP/1.1\r\n"])
async def test_a_head_without_an_end_ends_the_connection(live: Api, head: bytes) -> None:
    url = live.client.base_url
    reader, writer = await asyncio.open_connection(url.host, url.port)
    writer.write(head + (b"a: b\r\n" * 20_000 if head.endswith(b"1.1\r\n") else b"a" * 120_000))
    async with asyncio.timeout(DEADLINE_S):
        with suppress(ConnectionError):  # or the answer, if it was quicker than the end
            assert await reader.read(12) in (b"HTTP/1.1 400", b"")
            await reader.read()
    writer.close()
    assert (await live.client.get(f"{PREFIX}/health/live")).status_code == 200


_ENDED_BY_A_REQUEST = """
import os, sys
from pathlib import Path
from shoal.api.routes import health
from shoal.client.local.roles import run_role

def fail():
    {work}

health.Live = fail
os._exit(run_role("api", Path(sys.argv[1]), {{"port": 0}}))
"""


async def _ended_by_a_request(cluster: ClusterSettings, work: str) -> tuple[int, bytes]:
    """Return the exit status of an API that does ``work`` for a request, and its last lines."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", _ENDED_BY_A_REQUEST.format(work=work), str(cluster.data)),
        env={**os.environ, "SHOAL_ZOOKEEPER": cluster.zookeeper},
        stderr=asyncio.subprocess.PIPE,
    )
    assert process.stderr is not None
    try:
        async with asyncio.timeout(DEADLINE_S):
            line = b"it starts"
            while line and b"api ready" not in line:
                line = await process.stderr.readline()
            url = line.decode().split("url=")[1].split()[0]
            async with httpx.AsyncClient(base_url=url, trust_env=False) as client:
                with pytest.raises(httpx.RemoteProtocolError):
                    await client.get(f"{PREFIX}/health/live")
            left = await process.stderr.read()
            return await process.wait(), left
    finally:
        with suppress(ProcessLookupError):
            process.kill()
        await process.wait()


async def test_an_api_without_memory_ends_so_that_it_is_started_again(
    cluster: ClusterSettings,
) -> None:
    status, left = await _ended_by_a_request(cluster, "raise MemoryError")
    assert status == EXIT_NO_MEMORY
    assert b"out of memory: this process ends" in left
    assert left.count(b"\n") == 1, left


async def test_threads_of_an_api_leave_the_interpreter_to_its_event_loop(
    cluster: ClusterSettings,
) -> None:
    work = "os._exit(100 + round(1e4 * sys.getswitchinterval()))"  # tenths of a millisecond
    assert (await _ended_by_a_request(cluster, work))[0] == 105

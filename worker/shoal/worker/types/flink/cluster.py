"""A session cluster, by the REST API of its job manager."""

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import httpx

from shoal.core.data_sources import DataSource
from shoal.worker.types.child.outcome import WorkFailed
from shoal.worker.types.child.probe import ProbeParams
from shoal.worker.types.child.work import Work
from shoal.worker.types.flink.failures import cause, errors_of, is_of_the_jar, refusal, traces_of
from shoal.worker.types.http.wire.exchange import tls_context

ANSWER_S = 20.0  # for each piece of an answer; the start of a program has no limit but the task's
COPY_S = 15.0  # how old a copy may be of which Flink tells; 3 s unless it is set otherwise
LOOK_S = 0.5
_LARGEST = 64 << 20  # bytes of an answer
# What a program runs in while the job manager starts it for its REST API.
_STARTS_PROGRAM = ("DetachedApplicationRunner", "JarRunHandler")
_IN_MAIN = "PackagedProgram.callMainMethod"
# A machine that is gone without a word is noticed after a minute, also while a program starts.
_KEEPALIVE = [
    (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1),
    (socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 30),
    (socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 10),
    (socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 3),
]
TERMINAL = frozenset({"FINISHED", "FAILED", "CANCELED"})


class Unreachable(WorkFailed):
    """No whole answer came; what was asked for may have been done."""


class Refused(WorkFailed):
    """The cluster answered with an error. ``status`` is that of HTTP, ``trace`` what it said."""

    def __init__(self, text: str, status: int, trace: str, *, permanent: bool = False) -> None:
        self.status, self.trace = status, trace
        super().__init__(text, permanent=permanent)


@asynccontextmanager
async def connected(source: DataSource) -> AsyncIterator["FlinkClient"]:
    """Speak to the cluster of a data source. Raises WorkFailed if its options are wrong."""
    if source.password and not _is_tls(source):
        text = "a password or token is sent with the option tls=verify-full only"
        raise WorkFailed(f"data source {source.name!r}: {text}", permanent=True)
    async with httpx.AsyncClient(
        base_url=_url(source),
        auth=httpx.BasicAuth(source.user, source.password) if source.user else None,
        headers=_headers(source),
        transport=httpx.AsyncHTTPTransport(
            verify=_tls(source),
            trust_env=False,
            # One that was closed meanwhile leaves open whether a request was carried out.
            limits=httpx.Limits(max_keepalive_connections=0),
            socket_options=_KEEPALIVE,
        ),
        trust_env=False,
        follow_redirects=False,
        timeout=httpx.Timeout(ANSWER_S, connect=float(source.options.get("connect_timeout", 10))),
    ) as client:
        yield FlinkClient(client, source)


class FlinkClient:
    """The requests that tasks need. Its methods raise Unreachable, Refused."""

    def __init__(self, client: httpx.AsyncClient, source: DataSource) -> None:
        self._client = client
        self.where = f"data source {source.name!r} (flink {_url(source)})"
        self._pages = _url(source)

    def page(self, job: str) -> str:
        """Return the address of a job's page for people."""
        return f"{self._pages}/#/job/running/{job}/overview"

    async def version(self) -> str:
        """Return the version of Flink. Raises WorkFailed if something else answers, too."""
        found = (await self._ask("GET", "/config")).get("flink-version")
        if not found:
            text = "what answers there is not Flink: is this the port of its REST API?"
            raise WorkFailed(f"{self.where}: {text}", permanent=True)
        return str(found)

    # -- jars ------------------------------------------------------------------------------------

    async def jars(self) -> dict[str, str]:
        """Return the names of the uploaded jars by their ids."""
        files = (await self._ask("GET", "/jars")).get("files") or []
        return {str(one["id"]): str(one["name"]) for one in files}

    async def upload(self, jar: Path, name: str) -> str:
        """Upload a jar under a name; return its id. Raises OSError, too."""
        with jar.open("rb") as file:
            answer = await self._ask(
                "POST", "/jars/upload", files={"jarfile": (name, file, "application/java-archive")}
            )
        return str(answer.get("filename", "")).replace("\\", "/").rpartition("/")[2]

    async def delete_jar(self, jar: str) -> None:
        """Delete an uploaded jar. One that is gone is not an error."""
        try:
            await self._ask("DELETE", f"/jars/{jar}")
        except Refused:
            if jar in await self.jars():
                raise

    async def run(self, jar: str, body: Mapping[str, Any]) -> str:
        """Start the program of a jar; return the id of its job.

        Raises Refused, permanent if the jar itself is what is wrong. A job may run then, too.
        """
        timeout = httpx.Timeout(ANSWER_S, read=None)
        try:
            answer = await self._ask("POST", f"/jars/{jar}/run", json=body, timeout=timeout)
        except Refused as refused:
            text = f"{self.where}: the job was not started: {refusal(refused.trace)}"
            permanent = refused.permanent or is_of_the_jar(refused.trace)
            raise Refused(text, refused.status, refused.trace, permanent=permanent) from None
        return str(answer.get("jobid", ""))

    async def is_starting(self, main_class: str) -> bool:
        """Return whether the job manager is starting a program that may be of ``main_class``.

        Empty: any. Its threads say so. A Flink that does not show them is believed: it has
        deleted the jar, without which no program gets as far as to have a job.
        """
        try:
            threads = (await self._ask("GET", "/jobmanager/thread-dump")).get("threadInfos") or []
        except Refused as refused:
            if refused.status == 404:
                return False
            raise
        stacks = [str(one.get("stringifiedThreadInfo", "")) for one in threads]
        return any(_may_start(stack, main_class) for stack in stacks)

    # -- jobs ------------------------------------------------------------------------------------

    async def jobs(self) -> dict[str, str]:
        """Return the states of all jobs that the cluster remembers, by their ids."""
        jobs = (await self._ask("GET", "/jobs")).get("jobs") or []
        return {str(one["id"]): str(one["status"]) for one in jobs}

    async def status(self, job: str) -> str | None:
        """Return the state of a job, as it is now; None if the cluster knows none of the id."""
        try:
            return str((await self._ask("GET", f"/jobs/{job}/status")).get("status", ""))
        except Refused as refused:
            # Flink 2 says 500 for an unknown job here.
            if refused.status == 404 or "JobNotFoundException" in refused.trace:
                return None
            raise

    async def details(self, job: str) -> dict[str, Any]:
        """Return what there is to say of a job.

        Like exceptions, accumulators and checkpoints it comes from a copy that Flink keeps for
        seconds (``web.refresh-interval``): ``state`` says of which moment.
        """
        return await self._ask("GET", f"/jobs/{job}")

    async def until_told(self, job: str, status: str) -> None:
        """Return when that copy is one of the job's end, or after ``COPY_S``."""
        with suppress(TimeoutError):
            async with asyncio.timeout(COPY_S):
                while True:
                    if (await self.details(job)).get("state") == status:
                        return
                    await asyncio.sleep(LOOK_S)

    async def trace(self, job: str) -> str:
        """Return the stack trace of what a job failed of last; empty if it has none."""
        answer = await self._ask("GET", f"/jobs/{job}/exceptions", params={"maxExceptions": "1"})
        return next(traces_of(answer), "")

    async def accumulators(self, job: str) -> list[dict[str, Any]]:
        """Return the accumulators that a job's program has defined."""
        answer = await self._ask("GET", f"/jobs/{job}/accumulators")
        found = answer.get("user-task-accumulators")
        return found if isinstance(found, list) else []

    async def last_savepoint(self, job: str) -> str:
        """Return where a job's last savepoint is; empty if it has none."""
        latest = (await self._ask("GET", f"/jobs/{job}/checkpoints")).get("latest") or {}
        return str((latest.get("savepoint") or {}).get("external_path") or "")

    # -- their end -------------------------------------------------------------------------------

    async def cancel(self, job: str) -> None:
        """Ask for a job's end. One that has ended, or is not known, is not an error."""
        try:
            await self._ask("PATCH", f"/jobs/{job}", params={"mode": "cancel"})
        except Refused as refused:
            if refused.status not in (404, 409):
                raise

    async def stop(self, job: str, folder: str) -> None:
        """Ask for a savepoint of a job and its end. Asked again, it is the same request."""
        body: dict[str, Any] = {"drain": False, "triggerId": job}
        if folder:
            body["targetDirectory"] = folder
        await self._ask("POST", f"/jobs/{job}/stop", json=body)

    async def stopped(self, job: str) -> tuple[str, str] | None:
        """Return what became of ``stop``: the savepoint, or why there is none; None: it goes on."""
        answer = await self._ask("GET", f"/jobs/{job}/savepoints/{job}")
        if (answer.get("status") or {}).get("id") != "COMPLETED":
            return None
        operation = answer.get("operation") or {}
        failure = (operation.get("failure-cause") or {}).get("stack-trace", "")
        return str(operation.get("location") or ""), cause(str(failure)) if failure else ""

    # -- the wire --------------------------------------------------------------------------------

    async def _ask(self, method: str, path: str, **more: Any) -> dict[str, Any]:
        try:
            async with self._client.stream(method, path, **more) as response:
                content = bytearray()
                async for piece in response.aiter_bytes():
                    content += piece
                    if len(content) > _LARGEST:
                        raise WorkFailed(f"{self.where}: {path} answers with too much")
        except httpx.HTTPError as error:
            raise self._broken(error) from error
        body = _json(response, bytes(content))
        if response.is_success:
            return body
        raise self._refused(response, body)

    def _refused(self, response: httpx.Response, body: Mapping[str, Any]) -> Refused:
        status, trace = response.status_code, errors_of(body)
        if status in (401, 403):
            text = "refuses this user, password or token"
            return Refused(f"{self.where}: {text} (HTTP {status})", status, "", permanent=True)
        if response.is_redirect:
            text = f"leads elsewhere (HTTP {status}), which is not followed: correct the address"
            return Refused(f"{self.where}: {text}", status, "", permanent=True)
        said = cause(trace) if trace else f"HTTP {status}"
        return Refused(f"{self.where}: {said}", status, trace)

    def _broken(self, error: httpx.HTTPError) -> Unreachable | Refused:
        found: BaseException | None = error
        while found is not None:
            if isinstance(found, ssl.SSLCertVerificationError):
                text = f"its certificate is not trusted: {found.verify_message}; give the authority"
                return Refused(
                    f"{self.where}: {text} that has signed it in ca_certificate",
                    0,
                    "",
                    permanent=True,
                )
            if isinstance(found, ConnectionRefusedError):
                text = (
                    "no server listens there: is the job manager running, are host and port right?"
                )
                return Unreachable(f"{self.where}: {text}")
            found = found.__cause__ or found.__context__
        what = str(error) or type(error).__name__
        if isinstance(error, httpx.TimeoutException):
            what = "no answer in time"
        return Unreachable(f"{self.where}: {what}")


def _may_start(stack: str, main_class: str) -> bool:
    """Return whether a thread starts a program, perhaps that of ``main_class``."""
    if not any(text in stack for text in _STARTS_PROGRAM):
        return False
    return not main_class or _IN_MAIN not in stack or f"{main_class}.main(" in stack


def _json(response: httpx.Response, content: bytes) -> dict[str, Any]:
    """Return the answer's object; an empty one for anything else."""
    try:
        found = httpx.Response(response.status_code, content=content).json()
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _url(source: DataSource) -> str:
    scheme = "https" if _is_tls(source) else "http"
    host = f"[{source.host}]" if ":" in source.host else source.host
    return f"{scheme}://{host}:{source.port or 8081}{source.options.get('path') or ''}"


def _is_tls(source: DataSource) -> bool:
    return source.options.get("tls", "disable") == "verify-full"


def _tls(source: DataSource) -> ssl.SSLContext:
    if not _is_tls(source):
        return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # trusts no authority, and is not used
    return tls_context(str(source.options.get("ca_certificate") or ""))


def _headers(source: DataSource) -> dict[str, str]:
    headers = {"Accept": "application/json", "User-Agent": "shoal"}
    if source.password and not source.user:
        headers["Authorization"] = f"Bearer {source.password}"
    return headers


async def probe(work: Work[ProbeParams]) -> None:
    """Write the version of the cluster into the log. Raises WorkFailed with advice."""
    async with connected(work.data_source(work.params.data_source)) as cluster:
        version = await cluster.version()
        try:
            await cluster.jars()
        except Refused as refused:
            if refused.status != 404:
                raise
            text = "it takes no jars: set web.submit.enable, and see that it is a session cluster"
            raise WorkFailed(f"{cluster.where}: {text}", permanent=True) from refused
        live = [job for job, status in (await cluster.jobs()).items() if status == "RUNNING"]
    work.log(f"Flink {version}, {len(live)} jobs running")

"""A host, signed in to: its key is known, nothing of the worker's own SSH settings is used."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress

import asyncssh

from shoal.core.data_sources import DataSource
from shoal.core.errors import shortened
from shoal.worker.types.child.outcome import WorkFailed
from shoal.worker.types.child.probe import ProbeParams
from shoal.worker.types.child.work import Work
from shoal.worker.types.ssh import remote

_KEEPALIVE_S, _KEEPALIVES = 10.0, 3  # a silent host is left after so many unanswered
_END_TIMEOUT_S = 15.0
_EXIT_S = 1.0  # how long a host may take to report the end of a process that has done its work
_LAST_WORDS = 4096  # bytes of what a shell says that are kept for the reason


class ConnectionLost(WorkFailed):
    """The connection broke; what runs at the host goes on."""


@asynccontextmanager
async def signed_in(source: DataSource) -> AsyncIterator["Host"]:
    """Sign in for as long as the block runs. Raises WorkFailed with advice."""
    connection = await _connected(source)
    try:
        yield Host(connection, source)
    finally:
        connection.abort()


class Host:
    """One connection. Its methods raise ConnectionLost, WorkFailed."""

    def __init__(self, connection: asyncssh.SSHClientConnection, source: DataSource) -> None:
        self._connection, self._where = connection, described(source)

    @property
    def version(self) -> str:
        """What the server calls itself."""
        return str(self._connection.get_extra_info("server_version"))

    async def end(self, tag: str) -> None:
        """End everything that carries the tag. Returns when it is gone."""
        try:
            async with asyncio.timeout(_END_TIMEOUT_S):
                done = await self._connection.run(remote.end(tag), encoding=None)
        except TimeoutError:
            raise WorkFailed(f"{self._where}: no answer within {_END_TIMEOUT_S:g} s") from None
        except (asyncssh.Error, OSError) as error:
            raise ConnectionLost(f"{self._where}: {error}") from error
        if done.exit_status == 0:
            return
        said = shortened(_text(done.stdout) + _text(done.stderr), 300).strip()
        match done.exit_status:
            case remote.STILL_THERE:
                text = f"processes of this task do not end: {said}"
            case remote.NO_PROC:
                text = "it has no /proc, so what a task has left cannot be found: Linux is needed"
                raise WorkFailed(f"{self._where}: {text}", permanent=True)
            case _:
                text = f"could not look for what runs there: {said or done.exit_status}"
        raise WorkFailed(f"{self._where}: {text}")

    async def run(
        self, tag: str, script: remote.RemoteScript, log: Callable[[bytes], object]
    ) -> tuple[int, bytes]:
        """Run a script; return its exit code and what it has written as outputs.

        It has ended when its first process has: others may still run and hold its output open.
        """
        loop = asyncio.get_running_loop()
        session = _Session(script.mark, log, loop.create_future())
        try:
            channel, _ = await self._connection.create_session(
                lambda: session, script.command(tag), encoding=None
            )
            channel.write(script.program)
            channel.write_eof()
            await session.over
            with suppress(TimeoutError):  # otherwise it would be ended with what is left
                async with asyncio.timeout(_EXIT_S):
                    await session.exited.wait()
            channel.close()
        except (asyncssh.Error, OSError) as error:
            raise ConnectionLost(f"{self._where}: the connection was lost: {error}") from error
        code, outputs = session.answers
        if code is not None and outputs is not None:
            return _exit_code(int(code)), outputs
        ended = channel.get_returncode()
        if ended is None:
            raise ConnectionLost(f"{self._where}: the script did not end, its connection did")
        how = f"with exit code {ended}" if ended >= 0 else f"by signal {-ended}"
        text = f"{self._where}: the shell that starts the script and waits for it ended {how}"
        said = shortened(_text(session.said).strip(), 300)
        raise WorkFailed(f"{text}: {said or 'it has said nothing'}")


def _exit_code(status: int) -> int:
    """Return 128 + the signal for a script that was killed, which ksh counts from 256."""
    return status if status < 256 else status % 256 | 128


class _Session(asyncssh.SSHClientSession[bytes]):
    """Takes what the watcher sends: the exit code in standard output, the outputs in the other."""

    def __init__(
        self, mark: bytes, log: Callable[[bytes], object], over: asyncio.Future[None]
    ) -> None:
        self._log, self.over = log, over
        self._output, self._error = _MarkedAnswer(mark, log), _MarkedAnswer(mark, self._say)
        self.exited = asyncio.Event()
        self.said = b""  # the last words of the shell before the script

    @property
    def answers(self) -> tuple[bytes | None, bytes | None]:
        """The exit code and the outputs; None: the watcher has ended without."""
        return self._output.text, self._error.text

    def data_received(self, data: bytes, datatype: asyncssh.DataType) -> None:
        (self._output if datatype is None else self._error).add(data)
        if None not in self.answers:
            self._resolve()

    def exit_status_received(self, status: int) -> None:
        self._end(without_answers=status != 0)

    def exit_signal_received(self, signal: str, core_dumped: bool, msg: str, lang: str) -> None:
        self._end(without_answers=True)

    def _end(self, *, without_answers: bool) -> None:
        """Take the end of the watcher, which may overtake what it has sent."""
        self.exited.set()
        if without_answers:  # what the script has started may hold the channel open
            asyncio.get_running_loop().call_later(_EXIT_S, self._resolve)

    def _resolve(self) -> None:
        if not self.over.done():
            self.over.set_result(None)

    def connection_lost(self, exc: Exception | None) -> None:
        self.exited.set()
        self._output.flush()
        self._error.flush()
        if exc is not None and not self.over.done():
            self.over.set_exception(exc)
        self._resolve()

    def _say(self, chunk: bytes) -> None:
        self.said = (self.said + chunk)[-_LAST_WORDS:]
        self._log(chunk)


class _MarkedAnswer:
    """A stream of which a part stands between two marks, and all before it goes into the log."""

    def __init__(self, mark: bytes, log: Callable[[bytes], object]) -> None:
        self._mark, self._log = mark, log
        self._kept = bytearray()  # the beginning of a mark, perhaps; then the answer
        self._is_found = False
        self.text: bytes | None = None  # what stands between the marks, once both have come

    def add(self, chunk: bytes) -> None:
        """Take what has come. What follows the second mark is dropped."""
        if self.text is not None:
            return
        searched = max(0, len(self._kept) - len(self._mark))  # no mark ends before
        self._kept += chunk
        if not self._is_found:
            start = self._kept.find(self._mark)
            self._is_found, searched = start >= 0, 0
            logged = start if self._is_found else len(self._kept) - self._overlap()
            if logged:
                self._log(bytes(self._kept[:logged]))
            del self._kept[: logged + len(self._mark) * self._is_found]
        if self._is_found and (end := self._kept.find(self._mark, searched)) >= 0:
            self.text = bytes(self._kept[:end])

    def flush(self) -> None:
        """Take the end of the stream."""
        if not self._is_found and self._kept:
            self._log(bytes(self._kept))
            self._kept.clear()

    def _overlap(self) -> int:
        """Return how many of the last bytes may be the beginning of a mark."""
        start = self._kept.rfind(self._mark[:1])  # which the mark has nowhere else
        is_one = start >= 0 and self._mark.startswith(self._kept[start:])
        return len(self._kept) - start if is_one else 0


def described(source: DataSource) -> str:
    """Return the host as messages name it."""
    port = f":{source.port}" if source.port else ""
    return f"data source {source.name!r} (ssh {source.user}@{source.host}{port})"


async def _connected(source: DataSource) -> asyncssh.SSHClientConnection:
    where = described(source)
    key = await _host_key(source, where)
    timeout_s = float(source.options.get("connect_timeout", 10))
    is_key = source.password.lstrip().startswith("-----BEGIN")
    try:
        return await asyncssh.connect(
            source.host,
            source.port or 22,
            username=source.user,
            password=None if is_key else source.password or None,
            client_keys=[_private_key(source, where)] if is_key else None,
            known_hosts=([key], [], []),
            server_host_key_algs=[key.algorithm.decode()],
            config=None,
            agent_path=None,
            agent_forwarding=False,
            gss_host=None,
            host_based_auth=False,
            connect_timeout=timeout_s,
            login_timeout=timeout_s,
            keepalive_interval=_KEEPALIVE_S,
            keepalive_count_max=_KEEPALIVES,
            compression_algs=None,
        )
    except asyncssh.PermissionDenied as error:
        what = "key" if is_key else "password"
        text = f"{where}: the host refuses this user or {what}: {error.reason}"
        raise WorkFailed(text, permanent=True) from error
    except (asyncssh.HostKeyNotVerifiable, asyncssh.KeyExchangeFailed) as error:
        shown = await _shown_key(source)
        text = (
            f"{where}: the host has another key than `host_key` says, it shows {shown}. Is it "
            "another machine now? If the key is right, set the option"
        )
        raise WorkFailed(text, permanent=True) from error
    except TimeoutError:
        raise WorkFailed(f"{where}: no answer within {timeout_s:g} s") from None
    except ConnectionRefusedError as error:
        text = f"{where}: no server listens there: is the server running, are host and port right?"
        raise WorkFailed(text) from error
    except (asyncssh.Error, OSError) as error:
        raise WorkFailed(f"{where}: cannot sign in: {error}") from error


def _private_key(source: DataSource, where: str) -> asyncssh.SSHKey:
    try:
        return asyncssh.import_private_key(source.password)
    except asyncssh.KeyImportError as error:
        text = f"{where}: the private key cannot be used: {error}; it must have no passphrase"
        raise WorkFailed(text, permanent=True) from error


async def _host_key(source: DataSource, where: str) -> asyncssh.SSHKey:
    """Return the key that the host must have. Raises WorkFailed."""
    text = str(source.options.get("host_key") or "")
    if not text:
        shown = await _shown_key(source)
        advice = (
            f"{where}: the option `host_key` says which machine this is. The host shows {shown}. "
            "Compare that with the machine's /etc/ssh/ssh_host_*_key.pub, then set the option"
        )
        raise WorkFailed(advice, permanent=True)
    try:
        return asyncssh.import_public_key(text)
    except asyncssh.KeyImportError as error:
        text = f"{where}: `host_key` is not a public key such as ssh-ed25519 AAAA…: {error}"
        raise WorkFailed(text, permanent=True) from error


async def _shown_key(source: DataSource) -> str:
    try:
        async with asyncio.timeout(float(source.options.get("connect_timeout", 10))):
            key = await asyncssh.get_server_host_key(source.host, source.port or 22, config=None)
    except (asyncssh.Error, OSError) as error:  # a time-out is an OSError
        raise WorkFailed(f"{described(source)}: cannot connect: {error or 'no answer'}") from error
    if key is None:
        return "no key"
    return " ".join(key.export_public_key().decode().split()[:2])


def _text(data: object) -> str:
    return data.decode("utf-8", "replace") if isinstance(data, bytes) else str(data or "")


async def probe(work: Work[ProbeParams]) -> None:
    """Sign in, and write the version of the server into the log. Raises WorkFailed with advice."""
    async with signed_in(work.data_source(work.params.data_source)) as host:
        await host.end(work.tag)
        work.log(host.version)

"""A host, signed in to: its key is known, nothing of the worker's own SSH settings is used."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import asyncssh

from shoal.core.data_sources import DataSource
from shoal.core.errors import shortened
from shoal.worker.types.child.ending import WorkFailed
from shoal.worker.types.ssh import remote

_KEEPALIVE_S, _KEEPALIVES = 10.0, 3  # a silent host is left after so many unanswered
_END_TIMEOUT_S = 15.0
_LONGEST_LINE = 64 * 1024  # bytes; longer ones are cut into several


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
        self, tag: str, script: remote.Script, log: Callable[[str], None]
    ) -> tuple[int, bytes]:
        """Run a script; return its exit code and what it has written as outputs."""
        try:
            # It is not waited for: the host closes a channel when nobody writes to it any more.
            process = await self._connection.create_process(
                remote.start(tag), encoding=None, stderr=asyncssh.STDOUT
            )
            process.stdin.write(script.program.encode())
            process.stdin.write_eof()
            lines = _Lines(script.mark.encode(), log)
            while chunk := await process.stdout.read(_LONGEST_LINE):
                lines.add(chunk)
            lines.end()
        except (asyncssh.Error, OSError) as error:
            raise ConnectionLost(f"{self._where}: the connection was lost: {error}") from error
        if lines.code is None:
            raise ConnectionLost(f"{self._where}: the script did not end, its connection did")
        return lines.code, lines.outputs


class _Lines:
    """Takes the output of a script apart: lines of the log, then the exit code and outputs."""

    def __init__(self, mark: bytes, log: Callable[[str], None]) -> None:
        self._mark, self._log = mark + b" ", log
        self._rest = b""
        self._blank = False  # a line without text that may belong to the mark
        self.code: int | None = None
        self.outputs = b""

    def add(self, chunk: bytes) -> None:
        """Take what has come."""
        if self.code is not None:
            self.outputs += chunk
            return
        *lines, self._rest = (self._rest + chunk).split(b"\n")
        for number, line in enumerate(lines):
            if line.startswith(self._mark):
                self.code = int(line[len(self._mark) :])
                self.outputs = b"\n".join([*lines[number + 1 :], self._rest])
                return
            self._line(line)
        if len(self._rest) > _LONGEST_LINE:
            self._line(self._rest)
            self._rest = b""

    def end(self) -> None:
        """Take the end of everything."""
        if self.code is None and self._rest:
            self._line(self._rest)

    def _line(self, line: bytes) -> None:
        if self._blank:
            self._log("")
        self._blank = not line
        if line:
            self._log(line.decode("utf-8", "replace"))


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
        text = f"{where}: nobody listens there: is the server running, are host and port right?"
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
        text = f"{where}: `host_key` is no public key such as ssh-ed25519 AAAA…: {error}"
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

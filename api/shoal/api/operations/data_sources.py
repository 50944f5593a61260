"""Test a data source on a worker, which has the network and the drivers that tasks have."""

import asyncio
import random
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from shoal.api.operations.secrets.values import SecretValues
from shoal.api.web.errors import FieldError, InvalidRequest, NoWorker
from shoal.coordination.cluster.membership import MemberInfo, Members
from shoal.core.data_sources import DataSource
from shoal.core.data_sources.resolution import UnusableDataSource, rendered
from shoal.core.data_sources.spec import StoredDataSource
from shoal.core.errors import ShoalError
from shoal.core.macros.placeholders import Renderer, escape
from shoal.proto.channels import Channels, call
from shoal.proto.data_sources import to_message
from shoal.proto.errors import RpcError
from shoal.proto.shoal_pb2 import ProbeRequest
from shoal.runtime.source_kinds import load_source_kind
from shoal.runtime.vault import password_of_source
from shoal.sql.repositories.definitions.secrets import StoredSecret

CALL_TIMEOUT_S = 30.0


@dataclass(frozen=True)
class Probed:
    """What a worker found. ``text`` is what answered, or why the data source cannot be used."""

    ok: bool
    text: str
    worker: str
    took_s: float


class Prober:
    """Asks workers. One event loop."""

    def __init__(self, workers: Members, channels: Channels) -> None:
        self._workers, self._channels = workers, channels

    def worker_of(self, group: str) -> MemberInfo:
        """Return any worker of a group. Raises NoWorker."""
        found = [
            member
            for member in self._workers.current().values()
            if member.data.get("group") == group and member.data.get("address")
        ]
        if not found:
            groups = {str(m.data.get("group")) for m in self._workers.current().values()}
            raise NoWorker(
                f"there is no worker of the group {group}; groups with workers: "
                f"{', '.join(sorted(groups)) or 'none'}"
            )
        return random.choice(found)

    async def probe(self, source: DataSource, group: str) -> Probed:
        """Have a worker of the group sign in there. Raises NoWorker."""
        member = self.worker_of(group)
        address = str(member.data["address"])
        request = ProbeRequest(name=source.name, data_source=to_message(source))
        probing = self._channels.probe(address).Probe(request, timeout=CALL_TIMEOUT_S)
        try:
            reply = await call(address, probing)
        except RpcError as error:
            raise NoWorker(f"worker {member.id} was asked, but {error}") from error
        return Probed(reply.ok, reply.text, member.id, reply.took_s)


async def usable(
    stored: StoredDataSource,
    secrets: Mapping[str, StoredSecret],
    values: SecretValues,
    parameters: Mapping[str, str],
    now: datetime,
) -> DataSource:
    """Return a stored data source with everything rendered, as a task with ``parameters`` has it.

    Raises InvalidRequest if that cannot be done.
    """

    loop = asyncio.get_running_loop()

    def secret(name: str) -> str:
        """Wait for it, in the thread that renders."""
        if name not in secrets:
            raise UnusableDataSource(stored.name, "secret", f"{name} does not exist")
        opening = values.open(secrets[name], stored.project, name)
        return asyncio.run_coroutine_threadsafe(opening, loop).result()

    def made() -> DataSource:
        given = {name: escape(value) for name, value in parameters.items()}
        renderer = Renderer(now, [given], secret)
        password = ""
        if stored.password.secret is not None:
            password = secret(stored.password.secret)
        elif stored.password.ciphertext is not None:
            bound = password_of_source(stored.name)
            password = values.vault.open(stored.project, bound, stored.password.ciphertext)
        return rendered(
            stored.name,
            stored.spec,
            load_source_kind(stored.spec.kind),
            renderer.render,
            password=password,
            version=stored.version,
        )

    try:
        return await asyncio.to_thread(made)
    except ShoalError as error:
        raise InvalidRequest([FieldError("parameters", str(error))]) from error

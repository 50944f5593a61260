"""S9: strangers reach no method of a master or a worker, and nonsense stops neither of them."""

import asyncio
import random
import ssl
from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import grpc
import grpc.aio
import pytest
from google.protobuf.descriptor import FieldDescriptor, MethodDescriptor, ServiceDescriptor
from google.protobuf.message import DecodeError, Message
from google.protobuf.message_factory import GetMessageClass

from shoal.coordination import Members
from shoal.coordination.cluster import layout
from shoal.proto import shoal_pb2 as pb
from shoal.proto.channels import MAX_MESSAGE_BYTES
from shoal.proto.tls import NODE_NAME, TlsFiles
from tests.integration.master.conftest import Bench, make_bench
from tests.integration.worker.agent.kit import InProcessWorker
from tests.support.servers.authority import Authority
from tests.support.waiting import DEADLINE_S

SERVICES: Mapping[str, ServiceDescriptor] = pb.DESCRIPTOR.services_by_name
OF_MASTERS = {"MasterService"}
METHODS = [
    pytest.param(method, id=f"{service.name}.{method.name}")
    for service in SERVICES.values()
    for method in service.methods
]
UNEXPECTED = grpc.StatusCode.UNKNOWN  # what cannot be decoded, or an exception of a service
REFUSED = {grpc.StatusCode.UNAVAILABLE}  # no connection came about
NONSENSE = 300  # messages for each method
FRAMES = 20_000  # of HTTP/2, on as many connections as it takes


@dataclass(frozen=True)
class Site:
    """A master and a worker that run, and who signs the identities of their cluster."""

    authority: Authority
    master: str
    worker: str
    tls: TlsFiles

    def address(self, method: MethodDescriptor) -> str:
        return self.master if method.containing_service.name in OF_MASTERS else self.worker


@pytest.fixture
async def site(
    request: pytest.FixtureRequest, zk_chroot: str, tmp_path: Path
) -> AsyncIterator[Site]:
    authority = Authority()
    tls = authority.identity(tmp_path / "tls")
    async with (
        make_bench(request, "sqlite", zk_chroot, tmp_path) as bench,
        bench.master(),
        InProcessWorker(bench.cluster),
    ):
        master, worker = [await address(bench, one) for one in (layout.MASTERS, layout.WORKERS)]
        yield Site(authority, master, worker, tls)


async def address(bench: Bench, folder: str) -> str:
    """The address of the only member."""
    members = Members(bench.session, folder)
    async with asyncio.timeout(DEADLINE_S):
        while not (found := await members.refresh()):
            await asyncio.sleep(0.02)
    [member] = found.values()
    return str(member.data["address"])


def channel(address: str, credentials: grpc.ChannelCredentials | None) -> grpc.aio.Channel:
    options = [
        ("grpc.ssl_target_name_override", NODE_NAME),
        ("grpc.max_send_message_length", -1),
        ("grpc.enable_retries", 0),
        ("grpc.use_local_subchannel_pool", 1),
    ]
    if credentials is None:
        return grpc.aio.insecure_channel(address, options=options)
    return grpc.aio.secure_channel(address, credentials, options=options)


async def answer(over: grpc.aio.Channel, method: MethodDescriptor, body: bytes) -> grpc.StatusCode:
    """Call a method with the bytes of a request; return how it ended."""
    kind = over.unary_stream if method.server_streaming else over.unary_unary
    name = f"/{method.containing_service.full_name}/{method.name}"
    calling: Any = kind(name, bytes, bytes)(body, timeout=DEADLINE_S)
    try:
        if method.server_streaming:
            async for _ in calling:
                pass
        else:
            await calling
    except grpc.aio.AioRpcError as error:
        return error.code()
    return grpc.StatusCode.OK


def own(tls: TlsFiles) -> grpc.ChannelCredentials:
    return grpc.ssl_channel_credentials(*(f.read_bytes() for f in (tls.ca, tls.key, tls.cert)))


@pytest.fixture(params=["plain text", "no certificate", "another authority", "expired"])
def stranger(
    request: pytest.FixtureRequest, site: Site, tmp_path: Path
) -> grpc.ChannelCredentials | None:
    match request.param:
        case "plain text":
            return None
        case "no certificate":
            return grpc.ssl_channel_credentials(site.tls.ca.read_bytes())
        case "another authority":
            return own(Authority().identity(tmp_path / "other", ca=site.authority.pem))
        case _:
            return own(site.authority.identity(tmp_path / "old", expired=True))


async def test_strangers_reach_no_method(
    site: Site, stranger: grpc.ChannelCredentials | None
) -> None:
    for one in (site.master, site.worker):
        async with channel(one, stranger) as theirs, channel(one, own(site.tls)) as ours:
            for service in SERVICES.values():
                for method in service.methods:
                    assert await answer(theirs, method, b"") in REFUSED, method.full_name
                    if site.address(method) == one and method.name != "Probe":
                        assert await answer(ours, method, b"") not in REFUSED, method.full_name


async def test_methods_cannot_be_listed(site: Site) -> None:
    for one in (site.master, site.worker):
        async with channel(one, own(site.tls)) as ours:
            for version in ("v1", "v1alpha"):
                # A stream of requests would fail as INTERNAL if the server ends it before the first
                # request is written. One request gets the server's own status in any order.
                call = ours.unary_unary(
                    f"/grpc.reflection.{version}.ServerReflection/ServerReflectionInfo",
                    bytes,
                    bytes,
                )
                with pytest.raises(grpc.aio.AioRpcError) as refused:
                    await call(b"", timeout=DEADLINE_S)
                assert refused.value.code() is grpc.StatusCode.UNIMPLEMENTED


@pytest.mark.parametrize("method", METHODS)
async def test_a_message_that_is_too_large_is_refused(site: Site, method: MethodDescriptor) -> None:
    unknown_field = b"\xca\x3e" + varint(MAX_MESSAGE_BYTES)  # 1001, of bytes
    async with channel(site.address(method), own(site.tls)) as ours:
        found = await answer(ours, method, unknown_field + bytes(MAX_MESSAGE_BYTES))
        assert found is grpc.StatusCode.RESOURCE_EXHAUSTED


@pytest.mark.parametrize("method", METHODS)
async def test_fields_of_a_later_version_change_nothing(
    site: Site, method: MethodDescriptor
) -> None:
    async with channel(site.address(method), own(site.tls)) as ours:
        plain = await answer(ours, method, b"")
        assert await answer(ours, method, b"\xca\x3e\x03new") is plain


@pytest.mark.parametrize("method", METHODS)
async def test_nonsense_is_answered(site: Site, method: MethodDescriptor) -> None:
    chance = random.Random(method.full_name)
    count = NONSENSE if method.name != "Probe" else 5  # each starts a process
    async with channel(site.address(method), own(site.tls)) as ours:
        for _ in range(count):
            body = chance.randbytes(chance.randrange(1, 200))
            found = await answer(ours, method, body)
            wrong = UNEXPECTED if is_message(method, body) else grpc.StatusCode.OK
            assert found is not wrong, body
            message = filled(chance, GetMessageClass(method.input_type)())
            found = await answer(ours, method, message.SerializeToString())
            assert found is not UNEXPECTED, message
        assert await answer(ours, method, b"") not in REFUSED


def is_message(method: MethodDescriptor, body: bytes) -> bool:
    try:
        GetMessageClass(method.input_type).FromString(body)
    except DecodeError:
        return False
    return True


def filled(chance: random.Random, message: Message, depth: int = 3) -> Message:
    """Give each field of a message, or not, a value that is likely to be a bad one."""
    for field in message.DESCRIPTOR.fields:
        if chance.random() < 0.3 or (field.message_type is not None and depth == 0):
            continue
        values = getattr(message, field.name)
        if field.message_type is not None and field.message_type.GetOptions().map_entry:
            continue
        if field.message_type is not None:
            for _ in range(chance.randrange(3) if field.is_repeated else 1):
                filled(chance, values.add() if field.is_repeated else values, depth - 1)
        elif field.is_repeated:
            values.extend(value(chance, field) for _ in range(chance.randrange(4)))
        else:
            setattr(message, field.name, value(chance, field))
    return message


def value(chance: random.Random, field: Any) -> Any:
    texts = ["", "..", "../../etc/passwd", "/dev/zero", "w\0", "p.w", "💥" * 50, "%s{}$(id)", "w"]
    match field.cpp_type:
        case FieldDescriptor.CPPTYPE_STRING:
            one = chance.choice(texts)
            return one.encode() if field.type == FieldDescriptor.TYPE_BYTES else one
        case FieldDescriptor.CPPTYPE_DOUBLE:
            return chance.choice([0.0, -1.0, float("nan"), float("inf"), 1e300, 1.7e9])
        case FieldDescriptor.CPPTYPE_BOOL:
            return chance.random() < 0.5
        case FieldDescriptor.CPPTYPE_INT64:
            return chance.choice([0, 1, 2, -1, 2**63 - 1, -(2**63)])
        case FieldDescriptor.CPPTYPE_UINT32:
            return chance.choice([0, 1, 2**31, 2**32 - 1])
        case FieldDescriptor.CPPTYPE_ENUM:
            return chance.choice([0, 1, 2, 3, 99])
        case _:
            return chance.choice([0, 1, -1, 2**31 - 1, -(2**31)])


async def test_random_frames_stop_nobody(site: Site) -> None:
    chance = random.Random(9)
    context = ssl.create_default_context(cafile=site.tls.ca)
    context.check_hostname = False
    context.load_cert_chain(site.tls.cert, site.tls.key)
    context.set_alpn_protocols(["h2"])
    for one in (site.master, site.worker):
        host, _, port = one.rpartition(":")
        for tls in (None, context):
            sent = 0
            while sent < FRAMES:
                sent += await frames(chance, partial(asyncio.open_connection, host, port, ssl=tls))
        async with channel(one, own(site.tls)) as ours:
            [method] = [m for m in methods(site, one) if m.name in {"Standing", "Kill"}]
            assert await answer(ours, method, b"") is grpc.StatusCode.OK


def methods(site: Site, address: str) -> Iterator[MethodDescriptor]:
    for service in SERVICES.values():
        yield from (method for method in service.methods if site.address(method) == address)


async def frames(chance: random.Random, connect: Any) -> int:
    """Send random frames until the other side has had enough; return how many."""
    reader, writer = await connect()
    sent = 0
    try:
        writer.write(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(b"", kind=4))
        for _ in range(2):
            some = [frame(chance.randbytes(chance.randrange(40)), chance) for _ in range(50)]
            writer.write(b"".join(some))
            sent += len(some)
            await writer.drain()
            if reader.at_eof():
                break
        writer.write_eof() if writer.can_write_eof() else writer.close()
        async with asyncio.timeout(DEADLINE_S):
            while await reader.read(65536):
                pass
    except OSError:
        pass  # it hung up
    finally:
        writer.close()
    return sent


def frame(body: bytes, chance: random.Random | None = None, kind: int = 0) -> bytes:
    flags, stream = 0, 0
    if chance is not None:
        kind, flags, stream = chance.randrange(12), chance.randrange(256), chance.randrange(2**31)
    head = len(body).to_bytes(3) + bytes([kind, flags]) + stream.to_bytes(4)
    return head + body


def varint(number: int) -> bytes:
    found = bytearray()
    while number > 127:
        found.append(number & 127 | 128)
        number >>= 7
    return bytes([*found, number])

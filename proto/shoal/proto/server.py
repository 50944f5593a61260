"""The serving side: a gRPC server on mutual TLS with bounded messages and connections."""

from collections.abc import Callable

import grpc
import grpc.aio

from shoal.proto.channels import MAX_MESSAGE_BYTES
from shoal.proto.tls import TlsFiles
from shoal.runtime.limits.descriptors import descriptor_limit

HANDSHAKE_S = 10.0  # for a client to show its certificate
IDLE_S = 900.0  # a connection without a call; clients open another one when they need it
MOST_CALLS = 4096  # at once, of one connection
RESERVED_DESCRIPTORS = 256  # for the database, ZooKeeper and files
_ALIVE_S, _ANSWER_S = 60.0, 20.0  # a peer is asked for a sign of life, and has to give it
_PINGS_APART_S = 10.0  # of a client; one that pings more often is cut off


def _options() -> list[tuple[str, int]]:
    return [
        ("grpc.max_receive_message_length", MAX_MESSAGE_BYTES),
        ("grpc.max_send_message_length", MAX_MESSAGE_BYTES),
        # Without this two servers may share a port and steal each other's calls.
        ("grpc.so_reuseport", 0),
        ("grpc.server_handshake_timeout_ms", round(HANDSHAKE_S * 1000)),
        # More connections wait in the kernel instead of taking the last descriptors.
        (
            "grpc.max_allowed_incoming_connections",
            max(64, descriptor_limit() - RESERVED_DESCRIPTORS),
        ),
        ("grpc.max_concurrent_streams", MOST_CALLS),
        ("grpc.max_connection_idle_ms", round(IDLE_S * 1000)),
        ("grpc.keepalive_time_ms", round(_ALIVE_S * 1000)),
        ("grpc.keepalive_timeout_ms", round(_ANSWER_S * 1000)),
        ("grpc.keepalive_permit_without_calls", 1),
        ("grpc.http2.min_ping_interval_without_data_ms", round(_PINGS_APART_S * 1000)),
    ]


async def start_server(
    tls: TlsFiles,
    register: Callable[[grpc.aio.Server], None],
    host: str = "127.0.0.1",
    port: int = 0,
) -> tuple[grpc.aio.Server, str]:
    """Start a server; ``register`` adds the services. Return it and its ``host:port``.

    ``port`` 0 takes a free one. Raises OSError-like RuntimeError from gRPC if it is taken.
    """
    server = grpc.aio.server(options=_options())
    register(server)
    bound = server.add_secure_port(f"{host}:{port}", tls.server_credentials())
    await server.start()
    return server, f"{host}:{bound}"

"""The serving side: a gRPC server on mutual TLS with bounded messages."""

from collections.abc import Callable

import grpc
import grpc.aio

from shoal.proto.channels import MAX_MESSAGE_BYTES
from shoal.proto.tls import TlsFiles

_OPTIONS = [
    ("grpc.max_receive_message_length", MAX_MESSAGE_BYTES),
    ("grpc.max_send_message_length", MAX_MESSAGE_BYTES),
    # Without this two servers may share a port and steal each other's calls.
    ("grpc.so_reuseport", 0),
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
    server = grpc.aio.server(options=_OPTIONS)
    register(server)
    bound = server.add_secure_port(f"{host}:{port}", tls.server_credentials())
    await server.start()
    return server, f"{host}:{bound}"

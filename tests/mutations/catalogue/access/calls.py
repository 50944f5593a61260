"""Calls between nodes: who is heard, who is spoken to, and what nonsense does."""

from tests.mutations.mutation import Mutation, Promise
from tests.mutations.place import Place

_TLS = Place("shoal.proto.tls")
_SERVER = Place("shoal.proto.server")
_CHANNELS = Place("shoal.proto.channels")
_PROBING = Place("shoal.worker.execution.probes")
_ATTACKS = "tests/integration/rpc/test_attacks.py"

MUTATIONS: tuple[Mutation, ...] = (
    Promise.AUTHORISED.broken_if(
        "who shows no certificate is heard",
        _TLS["server_credentials"].replace(
            "grpc.ssl_server_credentials(...)", "grpc.ssl_server_credentials([(key, cert)])"
        ),
        f"{_ATTACKS}::test_strangers_reach_no_method[no certificate]",
    ),
    Promise.PROGRESS.broken_if(
        "messages may have any size",
        _SERVER.replace(
            "('grpc.max_receive_message_length', MAX_MESSAGE_BYTES)",
            "('grpc.max_receive_message_length', -1)",
        ),
        f"{_ATTACKS}::test_a_message_that_is_too_large_is_refused[MasterService.Report]",
    ),
    Promise.PROGRESS.broken_if(
        "a connection that shows no certificate stays open",
        _SERVER.replace("round(HANDSHAKE_S * 1000)", "120000"),
        "tests/integration/rpc/test_servers.py::"
        "test_connection_that_shows_no_certificate_is_closed",
    ),
    Promise.AUTHORISED.broken_if(
        "nodes of other names are spoken to",
        _CHANNELS.replace("NODE_NAME", "'node.elsewhere.internal'"),
        "tests/integration/rpc/test_servers.py::"
        "test_a_server_of_others_is_not_told_anything[another name]",
    ),
    Promise.PROGRESS.broken_if(
        "a data source that cannot be read is an exception",
        _PROBING["Probe"].replace("(ShoalError, OSError, ValueError)", "KeyError"),
        f"{_ATTACKS}::test_nonsense_is_answered[ProbeService.Probe]",
    ),
)

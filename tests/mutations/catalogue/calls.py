"""Calls between nodes: who is heard, who is spoken to, and what nonsense does."""

from tests.mutations.mutation import Mutation, Promise, mutation

_TLS = "proto/shoal/proto/tls.py"
_ATTACKS = "tests/integration/rpc/test_attacks.py"

MUTATIONS: tuple[Mutation, ...] = (
    mutation(
        "who shows no certificate is heard",
        Promise.AUTHORISED,
        _TLS,
        ("[(key, cert)], ca, require_client_auth=True)", "[(key, cert)])"),
        (f"{_ATTACKS}::test_strangers_reach_no_method[no certificate]",),
    ),
    mutation(
        "messages may have any size",
        Promise.PROGRESS,
        "proto/shoal/proto/server.py",
        (
            '("grpc.max_receive_message_length", MAX_MESSAGE_BYTES)',
            '("grpc.max_receive_message_length", -1)',
        ),
        (f"{_ATTACKS}::test_a_message_that_is_too_large_is_refused[MasterService.Report]",),
    ),
    mutation(
        "nodes of other names are spoken to",
        Promise.AUTHORISED,
        "proto/shoal/proto/channels.py",
        (
            '("grpc.ssl_target_name_override", NODE_NAME)',
            '("grpc.ssl_target_name_override", "node.elsewhere.internal")',
        ),
        (
            "tests/integration/rpc/test_servers.py::"
            "test_a_server_of_others_is_not_told_anything[another name]",
        ),
    ),
    mutation(
        "a data source of a later version is an exception",
        Promise.PROGRESS,
        "worker/shoal/worker/execution/probing.py",
        ("        except ValueError as error:\n", "        except ZeroDivisionError as error:\n"),
        (f"{_ATTACKS}::test_nonsense_is_answered[ProbeService.Probe]",),
    ),
)

"""Passwords and tokens on a user's machine: where they go, who may read them, when they end."""

from tests.mutations.mutation import Mutation, Promise, mutation

_SIGN_IN = "client/shoal/client/rest/access/sign_in.py"
_LOGINS = "client/shoal/client/logins.py"
_CONNECTION = "client/shoal/client/rest/connection.py"
_EXCHANGE = "client/shoal/client/rest/operations/exchange.py"
_CALLS = "tests/integration/client/test_access_calls.py"
_FILE = "tests/unit/client/test_logins.py"
_CLUSTER = "tests/integration/client/test_access.py"

MUTATIONS: tuple[Mutation, ...] = (
    mutation(
        "a password is sent to another machine in the clear",
        Promise.SECRETS_STAY,
        _SIGN_IN,
        ('if parts.scheme != "https" and parts.hostname not in LOOPBACK:', "if not parts.scheme:"),
        (
            f"{_CALLS}::test_password_is_not_sent_to_another_machine_in_the_clear"
            "[http://localhost.example]",
        ),
    ),
    mutation(
        "the certificate of any authority is trusted",
        Promise.SECRETS_STAY,
        _EXCHANGE,
        ("return ssl.create_default_context(cafile=ca)", "return ssl._create_unverified_context()"),
        (f"{_CALLS}::test_certificate_must_be_of_a_known_authority",),
    ),
    mutation(
        "logins are taken from a file that others may write",
        Promise.SECRETS_STAY,
        _LOGINS,
        ("if found.st_mode & 0o077:", "if not found.st_mode & 0o700:"),
        (f"{_FILE}::test_file_that_others_may_read_or_write_is_refused",),
    ),
    mutation(
        "logins are taken from a file of another user",
        Promise.SECRETS_STAY,
        _LOGINS,
        ("if found.st_uid != os.geteuid():", "if found.st_uid < 0:"),
        (f"{_FILE}::test_file_of_another_user_is_refused",),
    ),
    mutation(
        "a token goes on after its owner has signed out",
        Promise.SECRETS_STAY,
        "client/shoal/client/cli/access/signing.py",
        ("client.revoke_token(api.login.token_id)", "client.list_tokens()"),
        (
            f"{_CLUSTER}::test_first_sign_in_changes_the_password_and_keeps_a_token_that_ends_"
            "with_the_logout",
        ),
    ),
    mutation(
        "an account or a token is asked for twice",
        Promise.SENT_ONCE,
        _CONNECTION,
        ("RETRY_PAUSES_S if call.may_repeat else ()", "RETRY_PAUSES_S"),
        (f"{_CALLS}::test_what_another_request_would_answer_otherwise_is_sent_once",),
    ),
    mutation(
        "a change that names an ETag is sent twice",
        Promise.SENT_ONCE,
        "client/shoal/client/rest/operations/call.py",
        (" and not given & _PRECONDITIONS", ""),
        ("tests/integration/client/test_rest.py::test_a_change_names_the_etag_of_what_was_read",),
    ),
)

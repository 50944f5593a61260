"""Passwords and tokens on a user's machine: where they go, who may read them, when they end."""

from tests.mutations.mutation import Mutation, Promise
from tests.mutations.place import Place

_SIGN_IN = Place("shoal.client.rest.access.sign_in")
_EXCHANGE = Place("shoal.client.rest.operations.exchange")
_LOGINS = Place("shoal.client.logins")
_SIGNING = Place("shoal.client.cli.access.sign_in")
_CONNECTION = Place("shoal.client.rest.connection")
_CALLS = "tests/integration/client/access/test_access_calls.py"
_FILE = "tests/unit/client/test_logins.py"
_CLUSTER = "tests/integration/client/access/test_access.py"
_CALL = Place("shoal.client.rest.operations.call")
_DISCOVERY = Place("shoal.client.discovery")
_DISCOVERED = "tests/unit/client/test_discovery.py"

MUTATIONS: tuple[Mutation, ...] = (
    Promise.PROGRESS.broken_if(
        "an API that was started alone is looked for where the last cluster was",
        _DISCOVERY["local_api"].replace("_configured_url(...)", "None"),
        f"{_DISCOVERED}"
        "::test_a_configured_port_comes_before_the_address_of_a_cluster_that_was_stopped",
    ),
    Promise.SECRETS_STAY.broken_if(
        "a token is given to an API of another data folder at a configured port",
        _DISCOVERY["local_api"].drop("expected=folder"),
        f"{_DISCOVERED}::test_an_api_that_was_started_alone_is_at_its_configured_address",
    ),
    Promise.PROGRESS.broken_if(
        "a mistake in the settings hides the known address of an API",
        _DISCOVERY["_configured_url"].always("is_needed"),
        f"{_DISCOVERED}"
        "::test_settings_that_name_no_address_are_an_error_only_if_no_address_is_known",
    ),
    Promise.SECRETS_STAY.broken_if(
        "a password is sent to another machine in the clear",
        _SIGN_IN["require_encryption"].replace(
            "parts.scheme != 'https' and parts.hostname not in LOOPBACK", "not parts.scheme"
        ),
        f"{_CALLS}::"
        "test_password_is_not_sent_to_another_machine_in_the_clear[http://localhost.example]",
    ),
    Promise.SECRETS_STAY.broken_if(
        "the certificate of any authority is trusted",
        _EXCHANGE["_trusting"].replace(
            "ssl.create_default_context(cafile=ca)", "ssl._create_unverified_context()"
        ),
        f"{_CALLS}::test_certificate_must_be_of_a_known_authority",
    ),
    Promise.SECRETS_STAY.broken_if(
        "logins are taken from a file that others may write",
        _LOGINS["read_logins"].replace("found.st_mode & 0o077", "not found.st_mode & 0o700"),
        f"{_FILE}::test_file_that_others_may_read_or_write_is_refused",
    ),
    Promise.SECRETS_STAY.broken_if(
        "logins are taken from a file of another user",
        _LOGINS["read_logins"].replace("found.st_uid != os.geteuid()", "found.st_uid < 0"),
        f"{_FILE}::test_file_of_another_user_is_refused",
    ),
    Promise.SECRETS_STAY.broken_if(
        "a token goes on after its owner has signed out",
        _SIGNING["_revoke"].replace(
            "client.revoke_token(api.login.token_id)", "client.list_tokens()"
        ),
        f"{_CLUSTER}::"
        "test_first_sign_in_changes_the_password_and_keeps_a_token_that_ends_with_the_logout",
    ),
    Promise.SENT_ONCE.broken_if(
        "an account or a token is asked for twice",
        _CONNECTION["answer"].always("call.may_repeat"),
        "tests/integration/client/test_operations.py::"
        "test_what_may_not_be_repeated_is_sent_once[sync]",
    ),
    Promise.SENT_ONCE.broken_if(
        "a change that names an ETag is sent twice",
        _CALL["may_repeat"].drop("not given & _PRECONDITIONS"),
        "tests/integration/client/test_rest.py::test_a_change_names_the_etag_of_what_was_read",
    ),
)

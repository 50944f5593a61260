"""Secrets in other stores: a project reads its own, a token stays, nobody waits or storms."""

from tests.mutations.mutation import Mutation, Promise
from tests.mutations.place import Place

_STORES = Place("shoal.runtime.secret_stores.stores")
_REFERENCE = Place("shoal.runtime.secret_stores.reference")
_FILES = Place("shoal.runtime.secret_stores.files")
_VAULT = Place("shoal.runtime.secret_stores.hashicorp")
_RESOLVING = Place("shoal.runtime.secret_stores.resolver")
_SEALING = Place("shoal.sql.repositories.definitions.secrets_keys")
_UNIT = "tests/unit/runtime/test_references.py"
_MASTER = "tests/integration/master/dispatch/test_secret_references.py"
_CONTRACT = "tests/integration/secret_stores/test_vault_contract.py"
_RESOLVED = "tests/integration/secret_stores/test_resolving.py"

MUTATIONS: tuple[Mutation, ...] = (
    Promise.SECRETS_STAY.broken_if(
        "a project may read any path of a store",
        _STORES["checked"].replace("is_within(reference.path, opened)", "opened"),
        f"{_UNIT}::test_project_reads_no_path_of_another_one",
        f"{_MASTER}::test_what_cannot_be_read_fails_the_attempt_with_the_reason",
    ),
    Promise.SECRETS_STAY.broken_if(
        "what begins like an open path is open",
        _REFERENCE["is_within"].replace(
            "path.startswith(one) if one.endswith('/') else path == one",
            "path.startswith(one.rstrip('/'))",
        ),
        f"{_UNIT}::test_project_reads_no_path_of_another_one",
    ),
    Promise.SECRETS_STAY.broken_if(
        "a path may climb out of its folder",
        _REFERENCE.replace(
            "_SEGMENT = '(?!\\\\.{1,2}(?:/|$))[A-Za-z0-9_.@-]+'", "_SEGMENT = '[A-Za-z0-9_.@-]+'"
        ),
        f"{_UNIT}::test_what_could_lead_elsewhere_is_no_reference",
    ),
    Promise.SECRETS_STAY.broken_if(
        "settings may open the paths of one project to another one by a part of its name",
        _REFERENCE["template_problem"].replace(
            "text.split('/').count(OWN) != 1", "OWN not in text"
        ),
        f"{_UNIT}::test_settings_that_would_open_too_much_or_nothing_are_refused",
    ),
    Promise.SECRETS_STAY.broken_if(
        "links lead out of the folder of mounted files",
        _FILES["read"].replace("target.is_relative_to(root)", "target.is_absolute()"),
        "tests/integration/secret_stores/test_files.py::test_what_is_no_secret_is_refused",
    ),
    Promise.SECRETS_STAY.broken_if(
        "a token follows redirects",
        _VAULT["_client"].replace("follow_redirects=False", "follow_redirects=True"),
        f"{_CONTRACT}::test_token_goes_nowhere_else",
    ),
    Promise.SECRETS_STAY.broken_if(
        "any certificate is a store's",
        _VAULT["_client"].never("self._trusted"),
        f"{_CONTRACT}::test_server_that_another_authority_has_signed_gets_no_token",
    ),
    Promise.SECRETS_STAY.broken_if(
        "a credential that others may read is used",
        _VAULT["_secret_in"].replace("stat.S_IMODE(mode) & 0o037", "not mode"),
        f"{_CONTRACT}::test_credential_that_others_may_read_is_not_used",
    ),
    Promise.PROGRESS.broken_if(
        "an answer that drips in has no limit",
        _VAULT["_ask"].replace("self._clock() > until", "not until"),
        f"{_CONTRACT}::test_threads_end_with_the_time_of_a_look",
    ),
    Promise.PROGRESS.broken_if(
        "any number of looks is under way at once",
        _STORES["__init__"].replace("AT_ONCE", "10_000"),
        f"{_CONTRACT}::test_few_looks_are_under_way_at_once",
        f"{_RESOLVED}::test_plugin_that_never_comes_back_keeps_no_more_than_its_own_threads",
    ),
    Promise.PROGRESS.broken_if(
        "every attempt of a call waits for a store that hangs",
        _RESOLVING["_value"].replace("0.0 if self._is_slow(line) else WAIT_S", "WAIT_S"),
        f"{_RESOLVED}::test_many_attempts_one_after_the_other_wait_once_for_a_store_that_hangs",
    ),
    Promise.PROGRESS.broken_if(
        "a store that fails is asked by everybody",
        _RESOLVING["_begun"].drop("not line.breaker.allows(now)"),
        f"{_RESOLVED}::test_store_that_fails_is_left_alone_and_asked_by_one_look_at_a_time",
    ),
    Promise.PROGRESS.broken_if(
        "an attempt waits for ever for a store that is down",
        _RESOLVING["_with_patience"].replace("self._waiting.get(key, now)", "now"),
        f"{_RESOLVED}::test_attempt_waits_as_long_as_the_settings_say_and_then_fails",
    ),
    Promise.SECRETS_STAY.broken_if(
        "a rotation takes references for ciphertexts",
        _SEALING["_query"].replace("secret.c.reference.is_", "column.is_not"),
        f"{_MASTER}::test_reference_that_became_a_value_is_one",
    ),
)

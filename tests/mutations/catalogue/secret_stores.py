"""Secrets in other stores: a project reads its own, a token stays, nobody waits or storms."""

from tests.mutations.mutation import Promise, mutation

_STORES = "runtime/shoal/runtime/secret_stores/stores.py"
_VAULT = "runtime/shoal/runtime/secret_stores/hashicorp.py"
_FILES = "runtime/shoal/runtime/secret_stores/files.py"
_REFERENCE = "runtime/shoal/runtime/secret_stores/reference.py"
_RESOLVING = "runtime/shoal/runtime/secret_stores/resolving.py"
_UNIT = "tests/unit/runtime/test_references.py"
_CONTRACT = "tests/integration/secret_stores/test_vault_contract.py"
_MASTER = "tests/integration/master/test_secret_references.py"
_RESOLVED = "tests/integration/secret_stores/test_resolving.py"

MUTATIONS = (
    mutation(
        "a project may read any path of a store",
        Promise.SECRETS_STAY,
        _STORES,
        ("if not is_within(reference.path, opened):", "if not opened:"),
        (
            f"{_UNIT}::test_project_reads_no_path_of_another_one",
            f"{_MASTER}::test_what_cannot_be_read_fails_the_attempt_with_the_reason",
        ),
    ),
    mutation(
        "what begins like an open path is open",
        Promise.SECRETS_STAY,
        _REFERENCE,
        (
            'path.startswith(one) if one.endswith("/") else path == one for one',
            'path.startswith(one.rstrip("/")) for one',
        ),
        (f"{_UNIT}::test_project_reads_no_path_of_another_one",),
    ),
    mutation(
        "a path may climb out of its folder",
        Promise.SECRETS_STAY,
        _REFERENCE,
        (r"(?!\.{1,2}(?:/|$))[A-Za-z", "[A-Za-z"),
        (f"{_UNIT}::test_what_could_lead_elsewhere_is_no_reference",),
    ),
    mutation(
        "settings may open the paths of one project to another one by a part of its name",
        Promise.SECRETS_STAY,
        _REFERENCE,
        ('if text.split("/").count(OWN) != 1 or', "if OWN not in text or"),
        (f"{_UNIT}::test_settings_that_would_open_too_much_or_nothing_are_refused",),
    ),
    mutation(
        "links lead out of the folder of mounted files",
        Promise.SECRETS_STAY,
        _FILES,
        ("if not target.is_relative_to(root):", "if not target.is_absolute():"),
        ("tests/integration/secret_stores/test_files.py::test_what_is_no_secret_is_refused",),
    ),
    mutation(
        "a token follows redirects",
        Promise.SECRETS_STAY,
        _VAULT,
        ("follow_redirects=False,", "follow_redirects=True,"),
        (f"{_CONTRACT}::test_token_goes_nowhere_else",),
    ),
    mutation(
        "any certificate is a store's",
        Promise.SECRETS_STAY,
        _VAULT,
        ("verify=self._trusted,", "verify=False,"),
        (f"{_CONTRACT}::test_server_that_another_authority_has_signed_gets_no_token",),
    ),
    mutation(
        "a credential that others may read is used",
        Promise.SECRETS_STAY,
        _VAULT,
        ("if is_ours and stat.S_IMODE(mode) & 0o037:", "if is_ours and not mode:"),
        (f"{_CONTRACT}::test_credential_that_others_may_read_is_not_used",),
    ),
    mutation(
        "an answer that drips in has no limit",
        Promise.PROGRESS,
        _VAULT,
        (
            "                    if time.monotonic() > until:\n",
            "                    if not until:\n",
        ),
        (f"{_CONTRACT}::test_threads_end_with_the_time_of_a_look",),
    ),
    mutation(
        "any number of looks is under way at once",
        Promise.PROGRESS,
        _STORES,
        ("asyncio.Semaphore(AT_ONCE) for", "asyncio.Semaphore(10_000) for"),
        (
            f"{_CONTRACT}::test_few_looks_are_under_way_at_once",
            f"{_RESOLVED}::test_plugin_that_never_comes_back_keeps_no_more_than_its_own_threads",
        ),
    ),
    mutation(
        "every attempt of a call waits for a store that hangs",
        Promise.PROGRESS,
        _RESOLVING,
        ("timeout=0.0 if self._is_slow(line) else WAIT_S", "timeout=WAIT_S"),
        (f"{_RESOLVED}::test_many_attempts_one_after_the_other_wait_once_for_a_store_that_hangs",),
    ),
    mutation(
        "a store that fails is asked by everybody",
        Promise.PROGRESS,
        _RESOLVING,
        ("now < line.quiet_until or not line.breaker.allows(now)", "now < line.quiet_until"),
        (f"{_RESOLVED}::test_store_that_fails_is_left_alone_and_asked_by_one_look_at_a_time",),
    ),
    mutation(
        "an attempt waits for ever for a store that is down",
        Promise.PROGRESS,
        _RESOLVING,
        ("        since = self._waiting.get(key, now)", "        since = now"),
        (f"{_RESOLVED}::test_attempt_waits_as_long_as_the_settings_say_and_then_fails",),
    ),
    mutation(
        "a rotation takes references for ciphertexts",
        Promise.SECRETS_STAY,
        "sql/shoal/sql/repositories/definitions/sealing.py",
        ("else secret.c.reference.is_(None)", "else column.is_not(None)"),
        (f"{_MASTER}::test_reference_that_became_a_value_is_one",),
    ),
)

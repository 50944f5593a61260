"""HTTP tasks: which servers they reach, what they tell them, and what is sent twice."""

from tests.mutations.mutation import Mutation, Promise, mutation

_OUTBOUND = "runtime/shoal/runtime/outbound"
_HTTP = "worker/shoal/worker/types/http"
_UNIT = "tests/unit/worker/http"
_TESTS = "tests/integration/worker/http"

MUTATIONS: tuple[Mutation, ...] = (
    mutation(
        "addresses are not judged",
        Promise.TEXT_STAYS_TEXT,
        f"{_OUTBOUND}/guard.py",
        ("            self._require_allowed(host, addresses)", "            pass"),
        (
            f"{_TESTS}/test_reaching.py::"
            "test_own_machine_and_its_link_are_refused_however_they_are_written",
        ),
    ),
    mutation(
        "of several addresses one is judged",
        Promise.TEXT_STAYS_TEXT,
        f"{_OUTBOUND}/guard.py",
        (
            "        for address in addresses:\n            require_allowed(",
            "        for address in addresses[:1]:\n            require_allowed(",
        ),
        (f"{_TESTS}/test_reaching.py::test_host_is_refused_for_any_of_its_addresses",),
    ),
    mutation(
        "the name is looked up again after the judgement",
        Promise.TEXT_STAYS_TEXT,
        f"{_OUTBOUND}/guard.py",
        (
            "        for address in addresses:\n            try:",
            "        for address in await self._addresses(host, port):\n            try:",
        ),
        (
            f"{_TESTS}/test_reaching.py::"
            "test_address_that_was_judged_is_the_one_that_is_connected_to",
        ),
    ),
    mutation(
        "addresses inside of others are not judged",
        Promise.TEXT_STAYS_TEXT,
        f"{_OUTBOUND}/addresses.py",
        (
            "    if address in _SIX_TO_FOUR:",
            "    if True:\n        return\n    if address in _SIX_TO_FOUR:",
        ),
        ("tests/unit/runtime/test_addresses.py::test_refused_by_default",),
    ),
    mutation(
        "keys follow a redirect to another server",
        Promise.SECRETS_STAY,
        f"{_HTTP}/request.py",
        ("    return replace(following, headers=kept)", "    return following"),
        (f"{_TESTS}/test_redirects.py::test_keys_stay_with_the_first_server",),
    ),
    mutation(
        "what Basic authentication sends is shown",
        Promise.SECRETS_STAY,
        f"{_HTTP}/shown.py",
        ('                texts += [sent, sent.rstrip("=")]', "                pass"),
        (f"{_UNIT}/test_judging.py::test_basic_authentication_is_a_secret_too",),
    ),
    mutation(
        "a POST that may have been carried out is sent again",
        Promise.SENT_ONCE,
        f"{_HTTP}/failures.py",
        ("        self._may_be_done = True", "        pass"),
        (f"{_TESTS}/test_misbehaving.py::test_answer_that_is_lost",),
    ),
)

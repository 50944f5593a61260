"""HTTP tasks: which servers they reach, what they tell them, and what is sent twice."""

from tests.mutations.mutation import Mutation, Promise
from tests.mutations.place import Place

_GUARD = Place("shoal.runtime.outbound.guard")
_ADDRESSES = Place("shoal.runtime.outbound.addresses")
_REQUEST = Place("shoal.worker.types.http.request")
_SHOWN = Place("shoal.worker.types.http.disclosure")
_FAILURES = Place("shoal.worker.types.http.failures")
_TESTS = "tests/integration/worker/http"
_UNIT = "tests/unit/worker/http"
_TEST_REACHING = f"{_TESTS}/test_reaching.py"

MUTATIONS: tuple[Mutation, ...] = (
    Promise.TEXT_STAYS_TEXT.broken_if(
        "addresses are not judged",
        _GUARD["connect_tcp"].drop("self._require_allowed(...)"),
        f"{_TEST_REACHING}::test_own_machine_and_its_link_are_refused_however_they_are_written",
    ),
    Promise.TEXT_STAYS_TEXT.broken_if(
        "of several addresses one is judged",
        _GUARD["_require_allowed"].replace("addresses", "addresses[:1]"),
        f"{_TEST_REACHING}::test_host_is_refused_for_any_of_its_addresses",
    ),
    Promise.TEXT_STAYS_TEXT.broken_if(
        "the name is looked up again after the judgement",
        _GUARD["connect_tcp"].replace(
            "for address in addresses:\n    ...",
            "for address in await self._addresses(host, port):\n    ...",
        ),
        f"{_TEST_REACHING}::test_address_that_was_judged_is_the_one_that_is_connected_to",
    ),
    Promise.TEXT_STAYS_TEXT.broken_if(
        "addresses inside of others are not judged",
        _ADDRESSES["_meant"].replace(
            "yield IPv6Address(int(address))",
            "yield IPv6Address(int(address))\nif True:\n    return",
        ),
        "tests/unit/runtime/test_addresses.py::test_refused_by_default",
    ),
    Promise.SECRETS_STAY.broken_if(
        "keys follow a redirect to another server",
        _REQUEST["led_to"].replace("replace(following, headers=kept)", "following"),
        f"{_TESTS}/test_redirects.py::test_keys_stay_with_the_first_server",
    ),
    Promise.SECRETS_STAY.broken_if(
        "what Basic authentication sends is shown",
        _SHOWN["of"].drop("texts += [sent, sent.rstrip('=')]"),
        f"{_UNIT}/test_judging.py::test_basic_authentication_is_a_secret_too",
    ),
    Promise.SENT_ONCE.broken_if(
        "a POST that may have been carried out is sent again",
        _FAILURES["sent"].drop("self._may_be_done = True"),
        f"{_TESTS}/test_misbehaving.py::test_answer_that_is_lost",
    ),
)

"""What browsers get: each check of one-time codes and of the pages, taken out by itself."""

from tests.mutations.mutation import Mutation, Promise
from tests.mutations.place import Place

_CODES = Place("shoal.api.access.one_time")
_ROUTES = Place("shoal.api.routes.access.one_time")
_POLICY = Place("shoal.api.pages.ui")
_BROWSER_PAGES = Place("shoal.api.pages.ui")
_TESTS = "tests/integration/api/access/test_one_time.py::"
_PAGES = "tests/integration/api/web/test_pages.py::"

MUTATIONS: tuple[Mutation, ...] = (
    Promise.AUTHORISED.broken_if(
        "a one-time code works twice",
        _CODES["redeem"].replace(
            "self._until_s.pop(_digest(code), None)", "self._until_s.get(_digest(code))"
        ),
        f"{_TESTS}test_code_signs_in_once_as_the_administrator_of_the_data_folder",
    ),
    Promise.AUTHORISED.broken_if(
        "a one-time code is good for ever",
        _CODES["redeem"].drop("self._now_s() < until_s"),
        f"{_TESTS}test_code_is_good_for_a_minute",
    ),
    Promise.AUTHORISED.broken_if(
        "a sealed session needs no seal",
        _CODES["until"].drop("not is_ours"),
        f"{_TESTS}test_changed_cookie_is_worth_nothing",
    ),
    Promise.AUTHORISED.broken_if(
        "a sealed session outlives its sign-out",
        _CODES["until"].drop("text not in self._ended"),
        f"{_TESTS}test_sign_out_ends_the_session",
    ),
    Promise.AUTHORISED.broken_if(
        "a sealed session outlives its time",
        _CODES["until"].drop("self._now() < until"),
        f"{_TESTS}test_sealed_session_ends_with_its_time_and_with_the_token",
    ),
    Promise.AUTHORISED.broken_if(
        "every token makes one-time codes",
        _ROUTES["create_sign_in_code"].drop(
            "caller.principal.kind is not PrincipalKind.BREAK_GLASS"
        ),
        f"{_TESTS}test_only_the_token_of_the_data_folder_makes_codes",
    ),
    Promise.AUTHORISED.broken_if(
        "a session makes one-time codes",
        _ROUTES["create_sign_in_code"].drop("caller.credential.is_session"),
        f"{_TESTS}test_only_the_token_of_the_data_folder_makes_codes",
    ),
    Promise.AUTHORISED.broken_if(
        "another site redeems a one-time code",
        _ROUTES["login_by_one_time_code"].drop("require_own_page(request)"),
        f"{_TESTS}test_code_is_for_this_machine_and_for_our_pages",
    ),
    Promise.AUTHORISED.broken_if(
        "another machine redeems a one-time code",
        _ROUTES["_require_this_machine"].replace("not is_here", "not is_here and False"),
        f"{_TESTS}test_code_is_for_this_machine_and_for_our_pages",
    ),
    Promise.AUTHORISED.broken_if(
        "all pages share a nonce",
        _POLICY["new_nonce"].replace(
            "secrets.token_urlsafe(16)", "secrets.token_urlsafe(0) + 'same'"
        ),
        f"{_PAGES}test_page_has_a_strict_policy_with_a_nonce_of_its_own",
    ),
    Promise.AUTHORISED.broken_if(
        "pages swallow what the API does not have",
        _BROWSER_PAGES["matches"].never("path == '/api' or path.startswith('/api/')"),
        f"{_PAGES}test_what_is_no_page_stays_a_problem",
    ),
)

"""What browsers get: each check of one-time codes and of the pages, taken out by itself."""

from tests.mutations.mutation import Mutation, Promise, mutation

_CODES = "api/shoal/api/browser/one_time.py"
_ROUTES = "api/shoal/api/routes/access/one_time.py"
_TESTS = "tests/integration/api/access/test_one_time.py::"
_PAGES = "tests/integration/api/test_pages.py::"


def _lost(name: str, file: str, change: tuple[str, str], killer: str) -> Mutation:
    return mutation(name, Promise.AUTHORISED, file, change, (killer,))


MUTATIONS: tuple[Mutation, ...] = (
    _lost(
        "a one-time code works twice",
        _CODES,
        ("self._until_s.pop(_digest(code), None)", "self._until_s.get(_digest(code))"),
        _TESTS + "test_code_signs_in_once_as_the_administrator_of_the_data_folder",
    ),
    _lost(
        "a one-time code is good for ever",
        _CODES,
        ("until_s is not None and self._now_s() < until_s", "until_s is not None"),
        _TESTS + "test_code_is_good_for_a_minute",
    ),
    _lost(
        "a sealed session needs no seal",
        _CODES,
        ("parts[0] != _PREFIX or not _equal(seal, self._seal(head))", "parts[0] != _PREFIX"),
        _TESTS + "test_changed_cookie_is_worth_nothing",
    ),
    _lost(
        "a sealed session outlives its sign-out",
        _CODES,
        (" and text not in self._ended", ""),
        _TESTS + "test_sign_out_ends_the_session",
    ),
    _lost(
        "a sealed session outlives its time",
        _CODES,
        ("self._now() < until and ", ""),
        _TESTS + "test_sealed_session_ends_with_its_time_and_with_the_token",
    ),
    _lost(
        "every token makes one-time codes",
        _ROUTES,
        ("caller.principal.kind is not PrincipalKind.BREAK_GLASS or caller", "caller"),
        _TESTS + "test_only_the_token_of_the_data_folder_makes_codes",
    ),
    _lost(
        "a session makes one-time codes",
        _ROUTES,
        (" or caller.credential.is_session", ""),
        _TESTS + "test_only_the_token_of_the_data_folder_makes_codes",
    ),
    _lost(
        "another site redeems a one-time code",
        _ROUTES,
        ("    require_own_page(request)\n", ""),
        _TESTS + "test_code_is_for_this_machine_and_for_our_pages",
    ),
    _lost(
        "another machine redeems a one-time code",
        _ROUTES,
        ("    if not is_here:\n", "    if not is_here and False:\n"),
        _TESTS + "test_code_is_for_this_machine_and_for_our_pages",
    ),
    _lost(
        "all pages share a nonce",
        "api/shoal/api/browser/policy.py",
        ("return secrets.token_urlsafe(16)", 'return secrets.token_urlsafe(0) + "same"'),
        _PAGES + "test_page_has_a_strict_policy_with_a_nonce_of_its_own",
    ),
    _lost(
        "pages swallow what the API does not have",
        "api/shoal/api/browser/pages.py",
        ('if path == "/api" or path.startswith("/api/"):', "if False:"),
        _PAGES + "test_what_is_no_page_stays_a_problem",
    ),
)

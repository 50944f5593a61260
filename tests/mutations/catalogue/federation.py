"""Signing in at providers and directories: each check taken out by itself."""

from tests.mutations.mutation import Mutation, Promise, mutation

_API = "api/shoal/api"
_ROOM = f"{_API}/federation"
_ROUTES = f"{_API}/routes/access/sign_in.py"
_SQL = "sql/shoal/sql/repositories/access"
_OIDC = "tests/integration/api/access/test_oidc.py::"
_LDAP = "tests/integration/api/access/test_ldap.py::"
_TOKEN = "tests/unit/api/test_id_token.py::"
_FILES = "tests/unit/api/test_federation_files.py::"
_SETTINGS = "tests/unit/api/test_federation_settings.py::"
_BOTH = "tests/integration/sql/test_access.py::"


def _lost(name: str, file: str, change: tuple[str, str], *killers: str) -> Mutation:
    return mutation(name, Promise.AUTHORISED, file, change, killers)


def _id_token(what: str, change: tuple[str, str], twist: str) -> Mutation:
    killer = f"{_OIDC}test_id_token_that_is_not_for_this_sign_in_is_refused[{twist}]"
    return _lost(f"an ID token counts {what}", f"{_ROOM}/id_token.py", change, killer)


_STOLEN = f"{_OIDC}test_answer_is_worth_nothing_in_another_browser"
_ONCE = f"{_OIDC}test_sign_in_ends_once_even_if_the_provider_takes_codes_again"
_ELSEWHERE = f"{_OIDC}test_nobody_is_led_to_another_site"
_KEYS = f"{_OIDC}test_keys_are_remembered_and_new_ones_are_found"
_CERTIFICATE = f"{_LDAP}test_certificate_of_another_authority_is_refused"

_TOKENS: tuple[Mutation, ...] = (
    _id_token(
        "from another issuer",
        ('"iss": {"essential": True, "value": expected.issuer}', '"iss": {"essential": True}'),
        "another issuer",
    ),
    _id_token(
        "for another audience",
        ('"aud": {"essential": True, "value": expected.client_id}', '"aud": {"essential": True}'),
        "another audience by our azp",
    ),
    _id_token(
        "made for another party",
        ('                "client_id": expected.client_id,\n', ""),
        "made for another party",
    ),
    _id_token(
        "for another sign-in", ('                "nonce": expected.nonce,\n', ""), "another nonce"
    ),
    _id_token("when it is over", ("_LEEWAY_S = 60", "_LEEWAY_S = 10**9"), "expired"),
    _id_token("before its time", ("_LEEWAY_S = 60", "_LEEWAY_S = 10**6"), "of the future"),
    _id_token(
        "with any subject",
        ('if not is_subject(claims.get("sub")):', "if False:"),
        "a subject that cannot be stored",
    ),
    _id_token(
        "with the hash of another token",
        ('                "access_token": expected.access_token,\n', ""),
        "a hash of another token",
    ),
    _lost(
        "an ID token is signed by any algorithm",
        f"{_ROOM}/id_token.py",
        ("algorithms=list(expected.algorithms)", 'algorithms=["RS256", "ES256"]'),
        f"{_TOKEN}test_algorithm_has_to_be_one_of_the_settings",
    ),
    _lost(
        "secret keys of a provider check signatures",
        f"{_ROOM}/id_token.py",
        ('_KINDS = frozenset({"RSA",', '_KINDS = frozenset({"oct", "RSA",'),
        f"{_TOKEN}test_secret_keys_and_those_of_encryption_are_left_out",
    ),
    _lost(
        "settings take algorithms with shared keys",
        f"{_ROOM}/settings.py",
        ("if wrong := sorted(set(value) - ALGORITHMS):", "if wrong := []:"),
        f"{_SETTINGS}test_provider_that_would_be_unsafe_is_refused",
    ),
    _lost(
        "new keys of a provider are not looked for",
        f"{_ROOM}/provider.py",
        ("            keys = await self._newer_keys(found, keys)", "            pass"),
        _KEYS,
    ),
    _lost(
        "made-up keys make the provider be asked each time",
        f"{_ROOM}/provider.py",
        ("if self._keys is known and self._clock_s() >= self._keys_again_s:", "if True:"),
        _KEYS,
    ),
)

_FLOWS: tuple[Mutation, ...] = (
    _lost(
        "another browser ends a sign-in",
        _ROUTES,
        ("or not flows.is_same(flow.state, state)", ""),
        _STOLEN,
    ),
    _lost(
        "a sign-in ends twice",
        f"{_ROOM}/entering.py",
        ("        if not is_first:", "        if False:"),
        _ONCE,
    ),
    _lost(
        "a sign-in may take for ever",
        f"{_ROOM}/flow.py",
        ("is_ours and now_s < expires_s <= now_s + LASTS_S", "is_ours"),
        f"{_OIDC}test_sign_in_that_takes_too_long_is_over",
    ),
    _lost(
        "a code of another browser is taken",
        f"{_ROOM}/flow.py",
        ('return self._derived("verifier")', 'return "v" * 43'),
        f"{_OIDC}test_code_comes_with_the_verifier_of_its_challenge",
    ),
    _lost(
        "the answer of another issuer is taken",
        f"{_ROOM}/provider.py",
        ("if issuer != self.settings.issuer and (", "if False and ("),
        f"{_OIDC}test_answer_that_another_issuer_has_sent_is_refused",
    ),
    _lost(
        "a sign-in begins with any return address",
        _ROUTES,
        ("    if not flows.is_own_path(return_to):", "    if False:"),
        _ELSEWHERE,
    ),
    _lost(
        "a sign-in ends with any return address",
        f"{_ROOM}/flow.py",
        ("len(secret) >= 43 and is_own_path(return_to)", "len(secret) >= 43"),
        _ELSEWHERE,
    ),
    _lost(
        "two slashes are a path",
        f"{_ROOM}/flow.py",
        ('        and not text.startswith("//")\n', ""),
        _ELSEWHERE,
    ),
    _lost(
        "backslashes are in paths",
        f"{_ROOM}/flow.py",
        ('        and "\\\\" not in text\n', ""),
        _ELSEWHERE,
    ),
    _lost(
        "a page takes an address as it is",
        f"{_ROOM}/pages.py",
        ("    to = escape(path, quote=True)", "    to = path"),
        f"{_OIDC}test_page_that_leads_on_cannot_be_written_into",
    ),
    _lost(
        "discovery of another issuer counts",
        f"{_ROOM}/provider.py",
        ('    if found.get("issuer") != issuer:', "    if False:"),
        f"{_OIDC}test_discovery_that_leads_astray_is_refused",
    ),
    _lost(
        "endpoints may be in clear",
        f"{_ROOM}/provider.py",
        ("        require_encryption(url)\n", ""),
        f"{_OIDC}test_discovery_that_leads_astray_is_refused",
    ),
    _lost(
        "a provider's answer is read to its end",
        f"{_ROOM}/exchange.py",
        ("        if len(whole) > MOST_BYTES:", "        if False:"),
        f"{_OIDC}test_huge_answers_are_not_read_to_their_end",
    ),
    _lost(
        "a provider's answer may take for ever",
        f"{_ROOM}/exchange.py",
        ("asyncio.timeout(timeout_s)", "asyncio.timeout(None)"),
        f"{_OIDC}test_provider_that_is_slow_delays_no_password",
    ),
    _lost(
        "a provider's redirects are followed",
        f"{_ROOM}/exchange.py",
        ("follow_redirects=False", "follow_redirects=True"),
        f"{_OIDC}test_answers_that_lead_elsewhere_are_not_followed",
    ),
    _lost(
        "others may read the secret of a client",
        f"{_ROOM}/opening.py",
        ("if stat.S_IMODE(os.fstat(opened.fileno()).st_mode) & 0o077:", "if False:"),
        f"{_FILES}test_file_of_a_secret_is_private_and_there",
    ),
    _lost(
        "the code of a command line needs no verifier",
        f"{_SQL}/sign_ins.py",
        ("c.challenge == challenge, ", ""),
        f"{_BOTH}test_sign_in_ends_once_and_its_code_is_good_once[sqlite]",
    ),
    _lost(
        "the code of a command line is good for long",
        f"{_SQL}/sign_ins.py",
        (", c.code_expires_at > at)", ")"),
        f"{_BOTH}test_sign_in_ends_once_and_its_code_is_good_once[sqlite]",
    ),
    _lost(
        "the code of a command line is good twice",
        f"{_SQL}/sign_ins.py",
        (".values(code=None)", ".values(code=code)"),
        f"{_BOTH}test_sign_in_ends_once_and_its_code_is_good_once[sqlite]",
    ),
    _lost(
        "a command line takes any code",
        "client/shoal/client/rest/access/loopback.py",
        (" or not hmac.compare_digest(state.encode(), self._state.encode())", ""),
        "tests/integration/api/access/test_oidc_command.py::test_browser_signs_the_command_line_in",
    ),
)

_ACCOUNTS: tuple[Mutation, ...] = (
    _lost(
        "an account is taken over by its name",
        f"{_ROOM}/entering.py",
        (
            "        if found is not None:\n            return found\n",
            "        return await uow.principals.get(name)\n",
        ),
        f"{_OIDC}test_account_that_exists_is_never_taken_over_and_can_be_linked",
    ),
    _lost(
        "a subject is the same for every issuer",
        f"{_SQL}/principals.py",
        (".where(c.issuer == issuer, c.subject == subject)", ".where(c.subject == subject)"),
        f"{_BOTH}test_identity_is_of_one_account_and_an_account_has_one[sqlite]",
    ),
    _lost(
        "an identity is linked to a second account",
        f"{_SQL}/principals.py",
        ("        if found is not None and found.id != principal_id:", "        if False:"),
        f"{_BOTH}test_identity_is_of_one_account_and_an_account_has_one[sqlite]",
    ),
    _lost(
        "the unknown get accounts that nobody wants",
        f"{_ROOM}/entering.py",
        ("    if not rules.make_accounts:", "    if False:"),
        f"{_OIDC}test_without_accounts_made_the_unknown_stay_out",
    ),
    _lost(
        "names of Shoal's own become accounts",
        f"{_ROOM}/entering.py",
        ("        if key_of(name) in RESERVED_NAMES:", "        if False:"),
        f"{_OIDC}test_name_that_no_account_may_have_makes_none",
    ),
    _lost(
        "an address that nobody has verified names an account",
        f"{_ROOM}/provider.py",
        ('if self.settings.name_claim == "email" and', "if False and"),
        f"{_OIDC}test_address_that_nobody_has_verified_names_no_account",
    ),
    _lost(
        "everybody asks a provider that is down",
        f"{_ROOM}/provider.py",
        ("        if self._clock_s() < self._down_until_s:", "        if False:"),
        f"{_OIDC}test_provider_that_is_down_is_not_asked_by_everybody",
    ),
    _lost(
        "a disabled account signs in elsewhere",
        f"{_ROOM}/entering.py",
        ("found.disabled_at is not None or ", ""),
        f"{_OIDC}test_disabled_account_stays_out",
    ),
    _lost(
        "groups that the issuer took away stay",
        f"{_SQL}/groups.py",
        ("if of_issuer} - wanted", "if of_issuer} & set()"),
        f"{_BOTH}test_groups_of_an_issuer_come_and_go_and_those_by_hand_stay[sqlite]",
        f"{_OIDC}test_groups_are_those_of_the_latest_sign_in_and_those_by_hand_stay",
    ),
    _lost(
        "any group of the issuer makes a member",
        f"{_ROOM}/identity.py",
        (" if theirs in identity.groups)", ")"),
        f"{_OIDC}test_person_gets_an_account_with_a_session_and_groups",
    ),
    _lost(
        "sessions outlive the identity that began them",
        f"{_API}/routes/access/users.py",
        (
            "        await uow.principals.unlink(found.id)\n"
            "        await uow.sessions.end_all(found.id)\n",
            "        await uow.principals.unlink(found.id)\n",
        ),
        f"{_OIDC}test_account_that_exists_is_never_taken_over_and_can_be_linked",
    ),
)

_DIRECTORY: tuple[Mutation, ...] = (
    _lost(
        "no password is one",
        f"{_ROOM}/directory.py",
        ("        if not password:", "        if False:"),
        f"{_LDAP}test_no_password_signs_nobody_in",
    ),
    _lost(
        "a password is prepared until nothing is left",
        f"{_ROOM}/directory.py",
        ("= dn, password.encode()", "= dn, password"),
        f"{_LDAP}test_no_password_signs_nobody_in",
    ),
    _lost(
        "names are parts of a filter",
        f"{_ROOM}/directory.py",
        ("ldap3.utils.conv.escape_filter_chars(name)", "name"),
        f"{_LDAP}test_names_are_names_and_no_filters_or_parts_of_a_dn",
    ),
    _lost(
        "names are parts of a DN",
        f"{_ROOM}/directory.py",
        ("ldap3.utils.dn.escape_rdn(name)", "name"),
        f"{_LDAP}test_names_are_names_and_no_filters_or_parts_of_a_dn",
    ),
    _lost(
        "one of several people of a name signs in",
        f"{_ROOM}/directory.py",
        ("            if len(found) != 1:", "            if not found:"),
        f"{_LDAP}test_wrong_password_unknown_name_and_disabled_account_read_the_same",
    ),
    _lost(
        "a certificate may be for another name",
        f"{_ROOM}/directory.py",
        (
            "        connection.socket = self._context.wrap_socket(",
            "        self._context.check_hostname = False\n"
            "        connection.socket = self._context.wrap_socket(",
        ),
        _CERTIFICATE,
    ),
    _lost(
        "a certificate may be of any authority",
        f"{_ROOM}/directory.py",
        (
            "        connection.socket = self._context.wrap_socket(",
            "        self._context.check_hostname = False\n"
            "        self._context.verify_mode = ssl.CERT_NONE\n"
            "        connection.socket = self._context.wrap_socket(",
        ),
        _CERTIFICATE,
    ),
    _lost(
        "a directory that does not encrypt gets passwords",
        f"{_ROOM}/directory.py",
        ("if not is_tls and not connection.start_tls(read_server_info=False):", "if False:"),
        f"{_LDAP}test_nothing_is_said_in_clear[ldap]",
    ),
    _lost(
        "settings take a directory in clear",
        f"{_ROOM}/settings.py",
        ('if one.startswith("ldap://") and not self.start_tls:', "if False:"),
        f"{_SETTINGS}test_directory_that_would_be_unsafe_is_refused",
    ),
    _lost(
        "referrals are followed",
        f"{_ROOM}/directory.py",
        ("auto_referrals=False", "auto_referrals=True"),
        f"{_LDAP}test_nothing_is_followed_elsewhere",
    ),
    _lost(
        "a name is the key of a directory",
        f"{_ROOM}/directory.py",
        ("subject = _id(values, self.settings.id_attribute)", "subject = _id(values, 'uid')"),
        f"{_LDAP}test_name_is_not_the_key",
    ),
    _lost(
        "wrong passwords of a directory do not slow down",
        _ROUTES,
        (
            "    key = key_of(body.name)\n    shoal.attempts.begin(key, browser.address)\n",
            "    key = key_of(body.name)\n",
        ),
        f"{_LDAP}test_wrong_passwords_slow_down",
    ),
    _lost(
        "the time of a refusal tells of names",
        _ROUTES,
        ("        await soonest\n", ""),
        f"{_LDAP}test_refusals_take_as_long_whether_the_directory_knows_the_name_or_not",
    ),
)

MUTATIONS: tuple[Mutation, ...] = (*_TOKENS, *_FLOWS, *_ACCOUNTS, *_DIRECTORY)

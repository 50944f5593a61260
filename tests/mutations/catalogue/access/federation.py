"""Signing in at providers and directories: each check taken out by itself."""

from tests.mutations.mutation import Mutation, Promise
from tests.mutations.place import Place

_ID_TOKEN = Place("shoal.api.federation.id_token")
_FEDERATION_SETTINGS = Place("shoal.api.settings")
_PROVIDER = Place("shoal.api.federation.provider")
_ROUTES = Place("shoal.api.routes.access.sign_in")
_ENTERING = Place("shoal.api.federation.accounts")
_FLOW = Place("shoal.api.federation.flow")
_PAGES = Place("shoal.api.federation.flow")
_EXCHANGE = Place("shoal.api.federation.provider")
_OPENING = Place("shoal.api.federation.issuers")
_SIGN_INS = Place("shoal.sql.repositories.access.sign_ins")
_LOOPBACK = Place("shoal.client.rest.access.loopback")
_PRINCIPALS = Place("shoal.sql.repositories.access.principals")
_GROUPS = Place("shoal.sql.repositories.access.groups")
_IDENTITY = Place("shoal.api.federation.identity")
_USERS = Place("shoal.api.routes.access.users")
_DIRECTORY = Place("shoal.api.federation.directory")
_OIDC = "tests/integration/api/access/test_oidc.py::"
_TOKEN = "tests/unit/api/test_id_token.py::"
_SETTINGS = "tests/unit/api/test_federation_settings.py::"
_KEYS = f"{_OIDC}test_keys_are_remembered_and_new_ones_are_found"
_STOLEN = f"{_OIDC}test_answer_is_worth_nothing_in_another_browser"
_ONCE = f"{_OIDC}test_sign_in_ends_once_even_if_the_provider_takes_codes_again"
_ELSEWHERE = f"{_OIDC}test_nobody_is_led_to_another_site"
_FILES = "tests/unit/api/test_federation_files.py::"
_BOTH = "tests/integration/sql/access/test_access.py::"
_LDAP = "tests/integration/api/access/test_ldap.py::"
_CERTIFICATE = f"{_LDAP}test_certificate_of_another_authority_is_refused"

MUTATIONS: tuple[Mutation, ...] = (
    Promise.AUTHORISED.broken_if(
        "an ID token counts from another issuer",
        _ID_TOKEN["claims_of"].drop("'value': expected.issuer"),
        f"{_OIDC}test_id_token_that_is_not_for_this_sign_in_is_refused[another issuer]",
    ),
    Promise.AUTHORISED.broken_if(
        "an ID token counts for another audience",
        _ID_TOKEN["claims_of"].drop("'value': expected.client_id"),
        f"{_OIDC}"
        "test_id_token_that_is_not_for_this_sign_in_is_refused[another audience by our azp]",
    ),
    Promise.AUTHORISED.broken_if(
        "an ID token counts made for another party",
        _ID_TOKEN["claims_of"].drop("'client_id': ..."),
        f"{_OIDC}test_id_token_that_is_not_for_this_sign_in_is_refused[made for another party]",
    ),
    Promise.AUTHORISED.broken_if(
        "an ID token counts for another sign-in",
        _ID_TOKEN["claims_of"].drop("'nonce': ..."),
        f"{_OIDC}test_id_token_that_is_not_for_this_sign_in_is_refused[another nonce]",
    ),
    Promise.AUTHORISED.broken_if(
        "an ID token counts when it is over",
        _ID_TOKEN.replace("_LEEWAY_S = 60", "_LEEWAY_S = 10 ** 9"),
        f"{_OIDC}test_id_token_that_is_not_for_this_sign_in_is_refused[expired]",
    ),
    Promise.AUTHORISED.broken_if(
        "an ID token counts before its time",
        _ID_TOKEN.replace("_LEEWAY_S = 60", "_LEEWAY_S = 10 ** 6"),
        f"{_OIDC}test_id_token_that_is_not_for_this_sign_in_is_refused[of the future]",
    ),
    Promise.AUTHORISED.broken_if(
        "an ID token counts with any subject",
        _ID_TOKEN["claims_of"].never("not is_subject(claims.get('sub'))"),
        f"{_OIDC}"
        "test_id_token_that_is_not_for_this_sign_in_is_refused[a subject that cannot be stored]",
    ),
    Promise.AUTHORISED.broken_if(
        "an ID token counts with the hash of another token",
        _ID_TOKEN["claims_of"].drop("'access_token': ..."),
        f"{_OIDC}test_id_token_that_is_not_for_this_sign_in_is_refused[a hash of another token]",
    ),
    Promise.AUTHORISED.broken_if(
        "an ID token is signed by any algorithm",
        _ID_TOKEN["claims_of"].replace("list(expected.algorithms)", "['RS256', 'ES256']"),
        f"{_TOKEN}test_algorithm_has_to_be_one_of_the_settings",
    ),
    Promise.AUTHORISED.broken_if(
        "secret keys of a provider check signatures",
        _ID_TOKEN.replace("{'RSA', 'EC', 'OKP'}", "{'oct', 'RSA', 'EC', 'OKP'}"),
        f"{_TOKEN}test_secret_keys_and_those_of_encryption_are_left_out",
    ),
    Promise.AUTHORISED.broken_if(
        "settings take algorithms with shared keys",
        _FEDERATION_SETTINGS["_algorithms_are_asymmetric"].replace(
            "sorted(set(value) - ALGORITHMS)", "[]"
        ),
        f"{_SETTINGS}test_provider_that_would_be_unsafe_is_refused",
    ),
    Promise.AUTHORISED.broken_if(
        "new keys of a provider are not looked for",
        _PROVIDER["_claims"].drop("keys = await self._newer_keys(...)"),
        _KEYS,
    ),
    Promise.AUTHORISED.broken_if(
        "made-up keys make the provider be asked each time",
        _PROVIDER["_newer_keys"].always(
            "self._keys is known and self._clock_s() >= self._keys_again_s"
        ),
        _KEYS,
    ),
    Promise.AUTHORISED.broken_if(
        "another browser ends a sign-in",
        _ROUTES["end_sign_in"].drop("not flows.is_same(...)"),
        _STOLEN,
    ),
    Promise.AUTHORISED.broken_if(
        "a sign-in ends twice",
        _ENTERING["enter_by_flow"].never("not is_first"),
        _ONCE,
    ),
    Promise.AUTHORISED.broken_if(
        "a sign-in may take for ever",
        _FLOW["from_cookie"].drop("now_s < expires_s <= now_s + LASTS_S"),
        f"{_OIDC}test_sign_in_that_takes_too_long_is_over",
    ),
    Promise.AUTHORISED.broken_if(
        "a code of another browser is taken",
        _FLOW["verifier"].replace("self._derived('verifier')", "'v' * 43"),
        f"{_OIDC}test_code_comes_with_the_verifier_of_its_challenge",
    ),
    Promise.AUTHORISED.broken_if(
        "the answer of another issuer is taken",
        _PROVIDER["identity"].never("issuer != self.settings.issuer"),
        f"{_OIDC}test_answer_that_another_issuer_has_sent_is_refused",
    ),
    Promise.AUTHORISED.broken_if(
        "a sign-in begins with any return address",
        _ROUTES["begin_sign_in"].never("not flows.is_own_path(return_to)"),
        _ELSEWHERE,
    ),
    Promise.AUTHORISED.broken_if(
        "a sign-in ends with any return address",
        _FLOW["from_cookie"].drop("is_own_path(return_to)"),
        _ELSEWHERE,
    ),
    Promise.AUTHORISED.broken_if(
        "two slashes are a path",
        _FLOW["is_own_path"].drop("not text.startswith('//')"),
        _ELSEWHERE,
    ),
    Promise.AUTHORISED.broken_if(
        "backslashes are in paths",
        _FLOW["is_own_path"].drop("'\\\\' not in text"),
        _ELSEWHERE,
    ),
    Promise.AUTHORISED.broken_if(
        "a page takes an address as it is",
        _PAGES["leads_on"].replace("escape(path, quote=True)", "path"),
        f"{_OIDC}test_page_that_leads_on_cannot_be_written_into",
    ),
    Promise.AUTHORISED.broken_if(
        "discovery of another issuer counts",
        _PROVIDER["_metadata"].never("found.get('issuer') != issuer"),
        f"{_OIDC}test_discovery_that_leads_astray_is_refused",
    ),
    Promise.AUTHORISED.broken_if(
        "endpoints may be in clear",
        _PROVIDER["_endpoint"].drop("require_encryption(url)"),
        f"{_OIDC}test_discovery_that_leads_astray_is_refused",
    ),
    Promise.AUTHORISED.broken_if(
        "a provider's answer is read to its end",
        _EXCHANGE["_read"].never("len(whole) > MOST_BYTES"),
        f"{_OIDC}test_huge_answers_are_not_read_to_their_end",
    ),
    Promise.AUTHORISED.broken_if(
        "a provider's answer may take for ever",
        _EXCHANGE["fetch"].replace("asyncio.timeout(timeout_s)", "asyncio.timeout(None)"),
        f"{_OIDC}test_provider_that_is_slow_delays_no_password",
    ),
    Promise.AUTHORISED.broken_if(
        "a provider's redirects are followed",
        _EXCHANGE["new_client"].replace("follow_redirects=False", "follow_redirects=True"),
        f"{_OIDC}test_answers_that_lead_elsewhere_are_not_followed",
    ),
    Promise.AUTHORISED.broken_if(
        "others may read the secret of a client",
        _OPENING["_secret"].never("stat.S_IMODE(...) & 0o077"),
        f"{_FILES}test_file_of_a_secret_is_private_and_there",
    ),
    Promise.AUTHORISED.broken_if(
        "the code of a command line needs no verifier",
        _SIGN_INS["take"].drop("c.challenge == challenge"),
        f"{_BOTH}test_sign_in_ends_once_and_its_code_is_good_once[sqlite]",
    ),
    Promise.AUTHORISED.broken_if(
        "the code of a command line is good for long",
        _SIGN_INS["take"].drop("c.code_expires_at > at"),
        f"{_BOTH}test_sign_in_ends_once_and_its_code_is_good_once[sqlite]",
    ),
    Promise.AUTHORISED.broken_if(
        "the code of a command line is good twice",
        _SIGN_INS["take"].replace("code=None", "code=code"),
        f"{_BOTH}test_sign_in_ends_once_and_its_code_is_good_once[sqlite]",
    ),
    Promise.AUTHORISED.broken_if(
        "a command line takes any code",
        _LOOPBACK["_take"].drop("not hmac.compare_digest(...)"),
        "tests/integration/api/access/test_oidc_command.py::test_browser_signs_the_command_line_in",
    ),
    Promise.AUTHORISED.broken_if(
        "an account is taken over by its name",
        _ENTERING["_made"].replace(
            "if found is not None:\n    return found", "return await uow.principals.get(name)"
        ),
        f"{_OIDC}test_account_that_exists_is_never_taken_over_and_can_be_linked",
    ),
    Promise.AUTHORISED.broken_if(
        "a subject is the same for every issuer",
        _PRINCIPALS["of_identity"].drop("c.issuer == issuer"),
        f"{_BOTH}test_identity_is_of_one_account_and_an_account_has_one[sqlite]",
    ),
    Promise.AUTHORISED.broken_if(
        "an identity is linked to a second account",
        _PRINCIPALS["link"].never("found is not None and found.id != principal_id"),
        f"{_BOTH}test_identity_is_of_one_account_and_an_account_has_one[sqlite]",
    ),
    Promise.AUTHORISED.broken_if(
        "the unknown get accounts that nobody wants",
        _ENTERING["_made"].never("not rules.make_accounts"),
        f"{_OIDC}test_without_accounts_made_the_unknown_stay_out",
    ),
    Promise.AUTHORISED.broken_if(
        "names of Shoal's own become accounts",
        _ENTERING["_made"].never("key_of(name) in RESERVED_NAMES"),
        f"{_OIDC}test_name_that_no_account_may_have_makes_none",
    ),
    Promise.AUTHORISED.broken_if(
        "an address that nobody has verified names an account",
        _PROVIDER["_identity"].never("self.settings.name_claim == 'email'"),
        f"{_OIDC}test_address_that_nobody_has_verified_names_no_account",
    ),
    Promise.AUTHORISED.broken_if(
        "everybody asks a provider that is down",
        _PROVIDER["_about"].never("self._clock_s() < self._down_until_s"),
        f"{_OIDC}test_provider_that_is_down_is_not_asked_by_everybody",
    ),
    Promise.AUTHORISED.broken_if(
        "a disabled account signs in elsewhere",
        _ENTERING["_account"].drop("found.disabled_at is not None"),
        f"{_OIDC}test_disabled_account_stays_out",
    ),
    Promise.AUTHORISED.broken_if(
        "groups that the issuer took away stay",
        _GROUPS["set_of_issuer"].replace(
            "{one for one, of_issuer in present.items() if of_issuer} - wanted",
            "{one for one, of_issuer in present.items() if of_issuer} & set()",
        ),
        f"{_BOTH}test_groups_of_an_issuer_come_and_go_and_those_by_hand_stay[sqlite]",
        f"{_OIDC}test_groups_are_those_of_the_latest_sign_in_and_those_by_hand_stay",
    ),
    Promise.AUTHORISED.broken_if(
        "any group of the issuer makes a member",
        _IDENTITY["own_groups"].drop("theirs in identity.groups"),
        f"{_OIDC}test_person_gets_an_account_with_a_session_and_groups",
    ),
    Promise.AUTHORISED.broken_if(
        "sessions outlive the identity that began them",
        _USERS["delete_identity"].drop("await uow.sessions.end_all(found.id)"),
        f"{_OIDC}test_account_that_exists_is_never_taken_over_and_can_be_linked",
    ),
    Promise.AUTHORISED.broken_if(
        "no password is one",
        _DIRECTORY["identity"].never("not password"),
        f"{_LDAP}test_no_password_signs_nobody_in",
    ),
    Promise.AUTHORISED.broken_if(
        "a password is prepared until nothing is left",
        _DIRECTORY["_binds"].replace("password.encode()", "password"),
        f"{_LDAP}test_no_password_signs_nobody_in",
    ),
    Promise.AUTHORISED.broken_if(
        "names are parts of a filter",
        _DIRECTORY["_ask_server"].replace("ldap3.utils.conv.escape_filter_chars(name)", "name"),
        f"{_LDAP}test_names_are_names_and_no_filters_or_parts_of_a_dn",
    ),
    Promise.AUTHORISED.broken_if(
        "names are parts of a DN",
        _DIRECTORY["_ask_server"].replace("ldap3.utils.dn.escape_rdn(name)", "name"),
        f"{_LDAP}test_names_are_names_and_no_filters_or_parts_of_a_dn",
    ),
    Promise.AUTHORISED.broken_if(
        "one of several people of a name signs in",
        _DIRECTORY["_ask_server"].replace("len(found) != 1", "not found"),
        f"{_LDAP}test_wrong_password_unknown_name_and_disabled_account_read_the_same",
    ),
    Promise.AUTHORISED.broken_if(
        "a certificate may be for another name",
        _DIRECTORY["wrap_socket"].replace(
            "connection.socket = ...",
            "self._context.check_hostname = False\nconnection.socket = ...",
        ),
        _CERTIFICATE,
    ),
    Promise.AUTHORISED.broken_if(
        "a certificate may be of any authority",
        _DIRECTORY["wrap_socket"].replace(
            "connection.socket = ...",
            "self._context.check_hostname = False\n"
            "self._context.verify_mode = ssl.CERT_NONE\n"
            "connection.socket = ...",
        ),
        _CERTIFICATE,
    ),
    Promise.AUTHORISED.broken_if(
        "a directory that does not encrypt gets passwords",
        _DIRECTORY["_open"].never(
            "not is_tls and (not connection.start_tls(read_server_info=False))"
        ),
        f"{_LDAP}test_nothing_is_said_in_clear[ldap]",
    ),
    Promise.AUTHORISED.broken_if(
        "settings take a directory in clear",
        _FEDERATION_SETTINGS["_always_encrypted"].never(
            "one.startswith('ldap://') and (not self.start_tls)"
        ),
        f"{_SETTINGS}test_directory_that_would_be_unsafe_is_refused",
    ),
    Promise.AUTHORISED.broken_if(
        "referrals are followed",
        _DIRECTORY["_open"].replace("auto_referrals=False", "auto_referrals=True"),
        f"{_LDAP}test_nothing_is_followed_elsewhere",
    ),
    Promise.AUTHORISED.broken_if(
        "a name is the key of a directory",
        _DIRECTORY["_identity"].replace(
            "_id(values, self.settings.id_attribute)", "_id(values, 'uid')"
        ),
        f"{_LDAP}test_name_is_not_the_key",
    ),
    Promise.AUTHORISED.broken_if(
        "wrong passwords of a directory do not slow down",
        _ROUTES["login_by_directory"].drop("access.failed_logins.begin(...)"),
        f"{_LDAP}test_wrong_passwords_slow_down",
    ),
    Promise.AUTHORISED.broken_if(
        "the time of a refusal tells of names",
        _ROUTES["login_by_directory"].drop("await soonest"),
        f"{_LDAP}test_refusals_take_as_long_whether_the_directory_knows_the_name_or_not",
    ),
)

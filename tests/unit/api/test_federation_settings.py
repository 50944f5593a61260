"""Settings of providers and directories: what cannot be meant, or would be unsafe, is refused."""

from pathlib import Path
from typing import Any

import pytest

from shoal.api.settings import ApiSettings
from shoal.runtime.settings import InvalidSettings, load_settings

OIDC = {"issuer": "https://id.example", "client_id": "shoal"}
LDAP = {"servers": "ldaps://ldap.example", "user_dn": "uid={name},dc=example"}
SEARCH = {"user_dn": "", "bind_dn": "cn=x", "bind_password_file": "/x", "base_dn": "dc=example"}


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"issuer": "http://id.example"}, "is not https://"),
        ({"issuer": "https://user:pw@id.example"}, "not an https:// address"),
        ({"issuer": "https://id.example?x=1"}, "no query"),
        ({"issuer": "id.example"}, "not an https:// address"),
        ({"scopes": "profile"}, "openid"),
        ({"algorithms": "RS256 none"}, "none cannot be used"),
        ({"algorithms": "HS256"}, "HS256 cannot be used"),
        ({"algorithms": ""}, "name one"),
        ({"client_id": ""}, "client_id"),
        ({"groups": {"a": "b"}}, "groups_claim"),
        ({"client_secret": "written here"}, "client_secret"),
    ],
)
def test_provider_that_would_be_unsafe_is_refused(changes: dict[str, Any], words: str) -> None:
    given = {"public_url": "https://shoal.example", "oidc": {"main": {**OIDC, **changes}}}
    assert words in _refused(given)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"servers": "ldap://ldap.example"}, "would carry passwords in clear"),
        ({"servers": "ldaps://a ldap://b"}, "ldap://b would carry passwords in clear"),
        ({"start_tls": True}, "encrypted already"),
        ({"servers": "https://ldap.example"}, "is not a server"),
        ({"servers": ""}, "servers"),
        ({"user_dn": "uid=ada"}, "{name}"),
        ({"user_dn": ""}, "set bind_dn"),
        ({**SEARCH, "base_dn": ""}, "base_dn"),
        ({**SEARCH, "bind_password_file": ""}, "bind_password_file"),
        ({**SEARCH, "user_filter": "(uid=*)"}, "{name}"),
        ({**SEARCH, "user_dn": "uid={name}"}, "set bind_dn"),
    ],
)
def test_directory_that_would_be_unsafe_is_refused(changes: dict[str, Any], words: str) -> None:
    assert words in _refused({"ldap": {**LDAP, **changes}})


def test_providers_need_the_way_back() -> None:
    assert "public_url" in _refused({"oidc": {"main": OIDC}})
    assert "no path" in _refused({"public_url": "https://shoal.example/x"})
    assert "is not https://" in _refused({"public_url": "http://shoal.example"})
    assert "oidc" in _refused({"public_url": "https://s.example", "oidc": {"A b": OIDC}})


def test_tables_of_the_file_are_read(tmp_path: Path) -> None:
    (tmp_path / "shoal.toml").write_text(
        """
[api]
public_url = "https://shoal.example"
[api.oidc.main]
issuer = "https://id.example"
client_id = "shoal"
scopes = "openid, profile"
client_secret_file = ""
groups_claim = "groups"
[api.oidc.main.groups]
staff = "analysts"
[api.ldap]
servers = ["ldaps://one.example", "ldaps://two.example"]
user_dn = "uid={name},dc=example"
"""
    )
    found = load_settings(ApiSettings, "api", tmp_path)
    main = found.oidc["main"]
    assert (main.scopes, main.client_secret_file) == (("openid", "profile"), None)
    assert main.groups == {"staff": "analysts"}
    assert found.ldap is not None
    assert found.ldap.servers == ("ldaps://one.example", "ldaps://two.example")
    (tmp_path / "shoal.toml").write_text("[api.ldap]\nservers = 'ldap://x'\nuser_dn = 'u={name}'\n")
    with pytest.raises(InvalidSettings, match=r"ldap: .*in clear"):
        load_settings(ApiSettings, "api", tmp_path)


def _refused(given: dict[str, Any]) -> str:
    with pytest.raises(ValueError) as refused:
        ApiSettings.model_validate(given)
    return str(refused.value)

"""Which cluster a command speaks to."""

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from shoal.client.cli.cluster.commands import _tell_other_place
from shoal.client.discovery import TokenSource, data_folder, default_folder, find_api
from shoal.client.errors import NoCluster
from shoal.client.logins import SavedLogin, forget_login, keep_login, logins_file
from shoal.runtime.settings import InvalidSettings

STATE = {
    "api": "http://127.0.0.1:9001/",
    "zookeeper": "127.0.0.1:2181",
    "database_url": "",
    "pid": 1,
    "masters": 1,
    "workers": 1,
    "start": "",
    "path": "",
    "identity": "",
}


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home folder of its own, and none of the variables that lead elsewhere."""
    for name in (
        "SHOAL_DATA",
        "SHOAL_URL",
        "SHOAL_TOKEN",
        "SHOAL_CA",
        "SHOAL_CONFIG",
        "SHOAL_API_PORT",
        "XDG_CONFIG_HOME",
    ):
        monkeypatch.delenv(name, raising=False)
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.chdir(home)
    return home


def make(folder: Path, token: str = "secret") -> Path:
    """A data folder as `shoal up` leaves it."""
    folder.mkdir(parents=True)
    (folder / "cluster.json").write_text(json.dumps(STATE))
    (folder / "token").write_text(token + "\n")
    return folder


def test_the_data_folder_is_named_or_in_the_environment_or_near_or_at_home(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert data_folder(None) == home / ".shoal"
    near = tmp_path / "project" / ".shoal"
    (tmp_path / "project" / "deep" / "er").mkdir(parents=True)
    near.mkdir()
    monkeypatch.chdir(tmp_path / "project" / "deep" / "er")
    assert data_folder(None) == near
    monkeypatch.setenv("SHOAL_DATA", "~/elsewhere")
    assert data_folder(None) == home / "elsewhere"
    assert data_folder(Path("named")) == tmp_path / "project" / "deep" / "er" / "named"


def test_a_file_called_like_the_folder_is_not_it(home: Path) -> None:
    (home / "work").mkdir()
    (home / "work" / ".shoal").write_text("")
    assert default_folder() == home / ".shoal"


def test_address_and_token_come_from_the_data_folder(home: Path) -> None:
    folder = make(home / ".shoal")
    api = find_api()
    assert (api.url, api.token, api.data) == ("http://127.0.0.1:9001", "secret", folder)
    assert "secret" not in repr(api)
    assert api.hint == "start it with `shoal up`"
    named = make(home / "other place")
    assert find_api(named).hint == f"start it with `shoal up --data '{named}'`"


def test_a_role_that_was_started_alone_is_at_the_usual_address(home: Path) -> None:
    (make(home / ".shoal") / "cluster.json").unlink()
    assert find_api().url == "http://127.0.0.1:8765"


@pytest.mark.parametrize(
    ("table", "port", "url"),
    [
        ("port = 9100", None, "http://127.0.0.1:9100"),
        ("port = 9100", "9200", "http://127.0.0.1:9200"),
        ("", "9200", "http://127.0.0.1:9200"),
        ('port = 9100\nhost = "0.0.0.0"\nallow_clear = true', None, "http://127.0.0.1:9100"),
        ('port = 9100\nhost = "::"\nallow_clear = true', None, "http://[::1]:9100"),
        ('port = 9100\nhost = "10.1.2.3"\nallow_clear = true', None, "http://10.1.2.3:9100"),
        (
            'port = 9443\ntls_certificate = "a.pem"\ntls_key = "k.pem"\n'
            'allowed_hosts = ["shoal.example", "other.example"]',
            None,
            "https://shoal.example:9443",
        ),
        (
            'port = 9443\ntls_certificate = "a.pem"\ntls_key = "k.pem"\n'
            'allowed_hosts = ["[fd00::1]"]',
            None,
            "https://[fd00::1]:9443",
        ),
        (
            'port = 9443\ntls_certificate = "a.pem"\nallowed_hosts = ["fd00::1"]',
            None,
            "https://[fd00::1]:9443",
        ),
        # Mistakes that do not concern the address; the API itself reports them.
        ("port = 9100\n[api.ldap]", None, "http://127.0.0.1:9100"),
        ('port = 9100\noidc = "x"\nheartbeat_s = -1', None, "http://127.0.0.1:9100"),
        ("prot = 9100", "9200", "http://127.0.0.1:9200"),
        ("heartbeat_s = 5.0", None, "http://127.0.0.1:8765"),
        ("port = 0", None, "http://127.0.0.1:8765"),
    ],
)
def test_an_api_that_was_started_alone_is_at_its_configured_address(
    home: Path, monkeypatch: pytest.MonkeyPatch, table: str, port: str | None, url: str
) -> None:
    folder = make(home / ".shoal")
    (folder / "cluster.json").unlink()
    (folder / "shoal.toml").write_text(f"[api]\n{table}\n")
    if port is not None:
        monkeypatch.setenv("SHOAL_API_PORT", port)
    api = find_api()
    assert (api.url, api.token) == (url, "secret")
    if api.is_configured:
        assert api.expected == folder, "an API of another folder refuses"
        assert "`shoal api`" in api.hint


def test_a_configured_port_comes_before_the_address_of_a_cluster_that_was_stopped(
    home: Path,
) -> None:
    folder = make(home / ".shoal")
    (folder / "shoal.toml").write_text("[master]\n")
    assert find_api().url == "http://127.0.0.1:9001"
    (folder / "shoal.toml").write_text("[api]\nport = 9100\n")
    assert find_api().url == "http://127.0.0.1:9100"


@pytest.mark.parametrize(
    ("text", "port"),
    [
        ("[api]\nport = 99999\n", None),
        ("[api]\nport = 9100\n", "tcp://10.0.0.1:8765"),  # Kubernetes sets it for a service
        ("", "tcp://10.0.0.1:8765"),
        ("[api]\nport = 9100\nhost = 1\n", None),
        ("api = 3\n", None),
        ("[api\n", None),
    ],
)
def test_settings_that_name_no_address_are_an_error_only_if_no_address_is_known(
    home: Path, monkeypatch: pytest.MonkeyPatch, text: str, port: str | None
) -> None:
    folder = make(home / ".shoal")
    (folder / "shoal.toml").write_text(text)
    if port is not None:
        monkeypatch.setenv("SHOAL_API_PORT", port)
    assert find_api().url == "http://127.0.0.1:9001"
    (folder / "cluster.json").unlink()
    with pytest.raises(InvalidSettings, match=r"/shoal\.toml"):
        find_api()
    (folder / "token").unlink()
    with pytest.raises(NoCluster, match="has no token"):
        find_api()


def test_port_that_is_not_one_is_an_error_that_names_the_file(home: Path) -> None:
    folder = make(home / ".shoal")
    (folder / "cluster.json").unlink()
    (folder / "shoal.toml").write_text("[api]\nport = 99999\n")
    with pytest.raises(InvalidSettings, match=r"\[api\] \(from .*/shoal\.toml.*\n  port: "):
        find_api()


def test_a_remote_api_comes_from_the_environment_unless_a_folder_is_named(home: Path) -> None:
    folder = make(home / ".shoal")
    environment = {"SHOAL_URL": "https://shoal.example/", "SHOAL_TOKEN": "far "}
    api = find_api(environment=environment)
    assert (api.url, api.token, api.data) == ("https://shoal.example", "far", None)
    assert "SHOAL_URL" in api.hint
    assert find_api(folder, environment).token == "secret"


@pytest.mark.parametrize(
    ("environment", "says"),
    [
        (
            {"SHOAL_URL": "shoal.example:80", "SHOAL_TOKEN": "t"},
            "SHOAL_URL: 'shoal.example:80' is not an addr",
        ),
        ({"SHOAL_URL": "ftp://x", "SHOAL_TOKEN": "t"}, "expected something like https://"),
        ({"SHOAL_URL": "https://x"}, "SHOAL_TOKEN is not set and you have not signed in there"),
        ({}, "shoal up"),
        ({}, "shoal login URL"),
    ],
)
def test_what_is_missing_is_said(environment: dict[str, str], says: str) -> None:
    with pytest.raises(NoCluster, match=re.escape(says)):
        find_api(environment=environment)


def test_an_unreadable_token_is_told_with_its_file(home: Path) -> None:
    folder = make(home / ".shoal")
    (folder / "token").unlink()
    (folder / "token").mkdir()
    with pytest.raises(NoCluster, match=r"cannot read the token file .*/token"):
        find_api()


LOGIN = SavedLogin("https://shoal.example", "ada", "kept", 3, "2027-02-22T10:00:00Z")


def test_a_login_comes_before_the_data_folder_at_home(home: Path) -> None:
    make(home / ".shoal")
    keep_login(logins_file(), LOGIN)
    (home / "deep").mkdir()
    api = find_api()
    assert (api.url, api.token, api.data, api.login) == (LOGIN.url, "kept", None, LOGIN)
    assert api.source is TokenSource.LOGIN
    assert "sign in again with `shoal login https://shoal.example`" in api.refused
    assert find_api(home / ".shoal").source is TokenSource.DATA_FOLDER


def test_a_nearer_or_named_data_folder_comes_before_a_login(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keep_login(logins_file(), LOGIN)
    make(home / "project" / ".shoal", "near")
    monkeypatch.chdir(home / "project")
    assert find_api().token == "near"
    monkeypatch.chdir(home)
    assert find_api().token == "kept"
    monkeypatch.setenv("SHOAL_DATA", str(make(home / ".shoal", "at home")))
    assert find_api().token == "at home"


def test_the_address_in_the_environment_may_be_that_of_a_login(home: Path) -> None:
    keep_login(logins_file(), LOGIN)
    api = find_api(environment={"SHOAL_URL": "https://Shoal.example/"})
    assert (api.token, api.source) == ("kept", TokenSource.LOGIN)
    environment = {"SHOAL_URL": "https://shoal.example", "SHOAL_TOKEN": "given"}
    api = find_api(environment=environment)
    assert (api.token, api.source) == ("given", TokenSource.ENVIRONMENT)
    assert api.refused == "SHOAL_TOKEN is wrong, has expired or was revoked"


def test_an_authority_of_ones_own_is_remembered_or_in_the_environment(home: Path) -> None:
    environment = {"SHOAL_URL": "https://x", "SHOAL_TOKEN": "t", "SHOAL_CA": "~/ca.pem"}
    assert find_api(environment=environment).ca == home / "ca.pem"
    keep_login(logins_file(), replace(LOGIN, ca="/etc/ca.pem"))
    assert find_api().ca == Path("/etc/ca.pem")
    assert find_api(environment={"SHOAL_CA": "/other.pem"}).ca == Path("/etc/ca.pem")


def test_start_of_a_cluster_says_so_if_commands_go_elsewhere(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = make(home / ".shoal")
    keep_login(logins_file(), LOGIN)
    _tell_other_place(folder, None)
    told = "commands without --data speak to https://shoal.example: see `shoal whoami`\n"
    assert capsys.readouterr().err == told
    _tell_other_place(folder, folder)
    forget_login(logins_file(), LOGIN.url)
    _tell_other_place(folder, None)
    assert capsys.readouterr().err == ""

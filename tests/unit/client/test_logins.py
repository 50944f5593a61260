"""What ``shoal login`` keeps: whose file it may be, and how addresses are spelled."""

import json
import os
import re
from pathlib import Path

import pytest

from shoal.client.errors import LoginsUnusable, NoCluster
from shoal.client.logins import (
    Logins,
    SavedLogin,
    forget_login,
    keep_login,
    logins_file,
    normal,
    read_logins,
)

HERE = SavedLogin("http://127.0.0.1:8765", "ada", "shoal_pat_here", 3, "2027-02-22T10:00:00Z")
THERE = SavedLogin(
    "https://shoal.example", "bea", "shoal_pat_there", 4, "2027-03-01T10:00:00Z", "/ca"
)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "config" / "shoal" / "credentials.json"


def test_the_latest_login_is_the_present_one_until_it_is_forgotten(file: Path) -> None:
    assert read_logins(file) == Logins()
    keep_login(file, HERE)
    keep_login(file, THERE)
    found = read_logins(file)
    assert (found.current, found.at("http://127.0.0.1:8765/")) == (THERE, HERE)
    forget_login(file, THERE.url)
    found = read_logins(file)
    assert (found.current, found.at(THERE.url), found.at(HERE.url)) == (None, None, HERE)
    assert (file.stat().st_mode & 0o777, file.parent.stat().st_mode & 0o777) == (0o600, 0o700)
    assert "shoal_pat" not in repr(found)


@pytest.mark.parametrize("mode", [0o640, 0o602])
def test_file_that_others_may_read_or_write_is_refused(file: Path, mode: int) -> None:
    keep_login(file, HERE)
    file.chmod(mode)
    with pytest.raises(LoginsUnusable, match=f"run: chmod 600 '{file}'"):
        read_logins(file)


def test_file_of_another_user_is_refused(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    keep_login(file, HERE)
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    with pytest.raises(LoginsUnusable, match="it belongs to the user with number"):
        read_logins(file)


@pytest.mark.parametrize(
    "content",
    ["", "[]", "{}", '{"logins": {}, "present": null}', '{"logins": [1], "present": null}'],
)
def test_file_with_anything_else_in_it_is_refused_and_stays(file: Path, content: str) -> None:
    keep_login(file, HERE)
    file.write_text(content)
    with pytest.raises(LoginsUnusable, match="it does not hold what `shoal login` writes"):
        keep_login(file, THERE)
    assert file.read_text() == content


def test_values_of_another_type_are_refused(file: Path) -> None:
    keep_login(file, HERE)
    document = json.loads(file.read_text())
    document["logins"][0]["token"] = 7
    file.write_text(json.dumps(document))
    with pytest.raises(LoginsUnusable):
        read_logins(file)


def test_folder_in_the_way_is_named(file: Path) -> None:
    file.parent.parent.mkdir()
    file.parent.write_text("")
    with pytest.raises(LoginsUnusable, match=re.escape(str(file.parent))):
        keep_login(file, HERE)


def test_place_of_the_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/ada")
    assert logins_file({}) == Path("/home/ada/.config/shoal/credentials.json")
    assert logins_file({"XDG_CONFIG_HOME": "/etc/x"}) == Path("/etc/x/shoal/credentials.json")
    assert logins_file({"XDG_CONFIG_HOME": "x"}) == logins_file({})


@pytest.mark.parametrize(
    ("url", "spelled"),
    [
        ("https://Shoal.Example:443/", "https://shoal.example"),
        ("http://127.0.0.1:8765", "http://127.0.0.1:8765"),
        ("http://[::1]:80", "http://[::1]"),
        ("https://example.org/shoal/", "https://example.org/shoal"),
    ],
)
def test_addresses_have_one_spelling(url: str, spelled: str) -> None:
    assert normal(url) == spelled
    assert normal(spelled) == spelled


@pytest.mark.parametrize(
    "url", ["shoal.example", "ftp://shoal.example", "https://", "http://h:port", "http://[::1"]
)
def test_other_texts_are_no_addresses(url: str) -> None:
    with pytest.raises(NoCluster, match="is not an address"):
        normal(url)


@pytest.mark.parametrize("url", ["https://ada:hush@h", "https://h?token=hush", "https://h#hush"])
def test_secrets_in_an_address_are_refused_and_not_repeated(url: str) -> None:
    with pytest.raises(NoCluster, match="the address of h has more than host") as refused:
        normal(url)
    assert "hush" not in str(refused.value)

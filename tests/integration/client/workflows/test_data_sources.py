"""``shoal data-source`` on a real cluster."""

import re
import sqlite3
from pathlib import Path

import pytest

from tests.integration.client.conftest import Shoal, type_in

CERTIFICATE = "-----BEGIN CERTIFICATE-----\nTm8gcmVhbCBvbmU=\n-----END CERTIFICATE-----\n"
SERVER = ("--kind", "postgresql", "--host", "db", "--database", "sales", "--user", "etl")


def test_data_source_is_set_step_by_step_and_its_password_never_shown(
    here: Shoal, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "ca.pem").write_text(CERTIFICATE)
    type_in(monkeypatch, b"correct horse\n")
    place = ("--project", "lake")
    done = here("data-source", "set", "wh", *SERVER, *place, "--password-stdin")
    assert (done.status, done.out) == (0, "")
    assert done.err == "data source lake/wh is set: postgresql, ***\n"
    options = ("--option", "sslmode=verify-ca", "--option", "connect_timeout=5")
    changed = here(
        *("data-source", "set", "lake/wh", "--port", "5433", *options),
        *("--ca-certificate", "ca.pem", "--json", "--password-secret", "db"),
    )
    assert changed.json["options"] == {
        "sslmode": "verify-ca",
        "connect_timeout": 5,
        "ca_certificate": CERTIFICATE,
    }
    assert (changed.json["port"], changed.json["version"]) == (5433, 2)
    less = here(
        *("data-source", "set", "lake/wh", "--option", "ca_certificate=", "--option", "sslmode="),
        *("--share-with", "one", "--share-with", "two", "--json"),
    )
    assert less.json["options"] == {"connect_timeout": 5}
    assert (less.json["user"], less.json["shared_with"]) == ("etl", ["one", "two"])
    listed = here("data-source", "list", *place)
    assert re.search(
        r"^lake/wh +postgresql +db:5433/sales +etl +\$\{secret.db\} +one, two", listed.out, re.M
    )
    shown = here("data-source", "show", "lake/wh")
    assert re.search(r"^connect_timeout +5 *$", shown.out, re.MULTILINE)
    assert "horse" not in done.err + changed.out + listed.out + shown.out
    assert here("data-source", "set", "lake/wh", "--not-shared", "--no-password").err == (
        "data source lake/wh is set: postgresql, no password\n"
    )
    assert here("data-source", "delete", "lake/wh").status == 0
    assert here("data-source", "delete", "lake/wh").status == 3
    assert here("data-source", "show", "lake/wh").status == 3
    assert "make one with" in here("data-source", "list", *place).err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "--kind is required: one of duckdb"),
        (("--kind", "postgres"), "did you mean 'postgresql'?"),
        (("--kind", "mongodb"), "installed kinds: duckdb"),
        ((*SERVER, "--option", "sslmode"), "write NAME=VALUE"),
        ((*SERVER, "--option", "sslmod=require"), "did you mean 'sslmode'?"),
        ((*SERVER, "--option", "connect_timeout=soon"), "valid integer"),
        ((*SERVER, "--password", "--no-password"), "exclude each other"),
        ((*SERVER, "--share-with", "x", "--not-shared"), "exclude each other"),
        (("--kind", "sqlite", "--database", "x.db"), "absolute path"),
    ],
)
def test_mistakes_are_told_with_what_to_do(
    here: Shoal, arguments: tuple[str, ...], words: str
) -> None:
    done = here("data-source", "set", "oops", *arguments)
    assert done.status == 2
    assert words in " ".join(re.sub(r"[│╭╮╰╯─]", " ", done.err).split())
    assert here("data-source", "show", "oops").status == 3


def test_data_source_is_tried_by_a_worker(here: Shoal, tmp_path: Path) -> None:
    file = tmp_path / "w h.db"
    sqlite3.connect(file).close()
    here("data-source", "set", "tried", "--kind", "sqlite", "--database", "${folder}/w h.db")
    ok = here("data-source", "test", "tried", "-p", f"folder={tmp_path}")
    assert ok.status == 0, ok.err
    assert ok.err.startswith("ok: SQLite 3.")
    file.unlink()
    gone = here("data-source", "test", "tried", "-p", f"folder={tmp_path}", "--json")
    assert gone.status == 1
    assert not gone.json["ok"]
    assert "there is no file" in gone.json["text"]
    unfilled = here("data-source", "test", "tried")
    assert unfilled.status == 2
    assert "names a parameter that the task does not have: folder" in unfilled.err
    nobody = here("data-source", "test", "tried", "-p", "folder=/", "--group", "big")
    assert nobody.status == 4
    assert "there is no worker of the group big; groups with workers: default" in nobody.err
    assert here("data-source", "test", "nothing").status == 3

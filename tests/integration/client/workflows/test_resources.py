"""``shoal resource`` on a real cluster: files go up, come down, and are what tasks run."""

import os
from pathlib import Path

import pytest

from shoal.client import ShoalClient
from tests.integration.client.conftest import Shoal, workflow

JOB = 'set -eu\necho "greeting=$(cat resources/conf/greeting.txt)" > "$SHOAL_OUTPUT"\n'


def test_files_come_down_as_they_went_up(here: Shoal) -> None:
    content = os.urandom(2_500_000)
    Path("up/deep").mkdir(parents=True)
    Path("up/deep/a.bin").write_bytes(content)
    Path("up/b").write_text("")
    assert here("resource", "put", "up", "data/", "--project", "downs").status == 0
    again = here("resource", "put", "up", "data", "--project", "downs")
    assert again.err.count("has not changed") == 2
    assert here("resource", "get", "data/", "down", "--project", "downs").status == 0
    assert Path("down/deep/a.bin").read_bytes() == content
    assert Path("down/b").read_bytes() == b""
    there = here("resource", "get", "data/", "down", "--project", "downs")
    assert (there.status, "is there already; replace it with --force" in there.err) == (2, True)
    assert here("resource", "get", "data/", "down", "--force", "--project", "downs").status == 0
    Path("up/b").write_text("two")
    here("resource", "put", "up/b", "data/b", "--project", "downs")
    assert here("resource", "get", "data/b@1", "-", "--project", "downs").out == ""
    assert here("resource", "get", "data/b", "-", "--project", "downs").out == "two"
    listed = here("resource", "list", "--project", "downs", "--json").json
    assert [(one["path"], one["version"]) for one in listed] == [
        ("data/b", 2),
        ("data/deep/a.bin", 1),
    ]
    shown = here("resource", "show", "data/b", "--project", "downs", "--json").json
    assert [one["version"] for one in shown] == [2, 1]
    assert "data/b" in here("resource", "show", "data/b", "--project", "downs").out
    assert here("resource", "delete", "data/", "--project", "downs").err == (
        "downs/data/: deleted 2 files\n"
    )
    assert here("resource", "get", "data/b", "--project", "downs").status == 3
    assert here("resource", "get", "data/", "--project", "downs").status == 3


def test_text_is_compared_and_edited(here: Shoal, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("a.txt").write_text("one\ntwo\n")
    here("resource", "put", "a.txt", "--project", "edits")
    only = here("resource", "diff", "a.txt", "--project", "edits")
    assert (only.status, "one version only" in only.err) == (3, True)
    monkeypatch.setenv("EDITOR", "sed -i s/two/drei/")
    assert here("resource", "edit", "a.txt", "--project", "edits").err == "edits/a.txt@2\n"
    changed = here("resource", "diff", "a.txt", "--project", "edits")
    assert changed.status == 1
    assert changed.out.splitlines()[-2:] == ["-two", "+drei"]
    assert here("resource", "diff", "a.txt@1", "a.txt@1", "--project", "edits").status == 0
    assert "nothing has" in here("resource", "edit", "a.txt", "--project", "edits").err
    monkeypatch.setenv("EDITOR", "false")
    assert "ended with status 1" in here("resource", "edit", "a.txt", "--project", "edits").err
    monkeypatch.setenv("EDITOR", "/nowhere/editor")
    assert "cannot be started" in here("resource", "edit", "a.txt", "--project", "edits").err


def test_edit_of_what_somebody_else_has_changed_is_refused_and_kept(
    here: Shoal, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("a.txt").write_text("one\n")
    here("resource", "put", "a.txt", "--project", "races")
    editor = Path("editor.sh")
    editor.write_text('#!/bin/sh\necho mine > "$1"\n')
    editor.chmod(0o700)
    monkeypatch.setenv("EDITOR", str(editor.absolute()))
    store = ShoalClient.upload

    def late(self: ShoalClient, *args: object, **rest: object) -> object:
        if rest.get("expected_version"):
            store(self, "races", "a.txt", b"theirs\n")
        return store(self, *args, **rest)  # type: ignore[arg-type]

    monkeypatch.setattr(ShoalClient, "upload", late)
    refused = here("resource", "edit", "a.txt", "--project", "races")
    assert refused.status == 1
    assert "your text is in a.txt.mine" in refused.err
    assert "is of version 2 now, the change expects version 1" in refused.err
    assert Path("a.txt.mine").read_text() == "mine\n"


@pytest.mark.parametrize(
    ("command", "words"),
    [
        (("put", "none.txt"), "there is no file or folder none.txt"),
        (("put", "a.txt", "../x"), "not a path within a project"),
        (("put", "empty"), "holds no files"),
        (("put", "links"), "a link that leads out of the folder"),
        (("get", "../x"), "not a path within a project"),
        (("get", "a/", "-"), "no place on standard output"),
        (("delete", "a.txt@1"), "a version cannot be deleted by itself"),
        (("diff", "a@x"), "is not a version"),
    ],
)
def test_mistake_is_told_before_anything_is_done(
    here: Shoal, command: tuple[str, ...], words: str
) -> None:
    Path("a.txt").write_text("one\n")
    Path("empty").mkdir()
    Path("links").mkdir()
    Path("links/out").symlink_to(Path("a.txt").absolute())
    done = here("resource", *command, "--project", "wrong")
    assert done.status == 2
    assert words in " ".join(done.err.replace("│", " ").split())


def test_what_is_no_file_of_a_folder_is_named_and_is_a_failure(here: Shoal) -> None:
    folder = Path("mixed")
    (folder / "sub").mkdir(parents=True)
    (folder / "sub" / "real.txt").write_text("one\n")
    (folder / "within").symlink_to("sub/real.txt")
    (folder / "dangling").symlink_to("nowhere")
    (folder / "again").symlink_to("sub")
    os.mkfifo(folder / "pipe")
    done = here("resource", "put", "mixed")
    assert done.status == 1
    assert "mixed/sub/real.txt@1" in done.err
    assert "mixed/within@1" in done.err
    told = done.err.splitlines()
    assert (
        "not uploaded: mixed/again: a link to the folder sub; upload that folder by itself" in told
    )
    assert "not uploaded: mixed/dangling: a link to nowhere, which does not exist" in told
    assert "not uploaded: mixed/pipe: a pipe, not a file" in told


def test_trial_takes_resources_from_a_folder(here: Shoal) -> None:
    workflow("unused", "true")
    Path("files/etl").mkdir(parents=True)
    Path("files/conf").mkdir()
    Path("files/conf/greeting.txt").write_text("hello")
    Path("files/etl/job.sh").write_text(JOB)
    Path("t.yaml").write_text(
        "name: t\ntasks:\n"
        "- {name: only, type: SHELL, params: {file: etl/job.sh@3}, resources: conf/}\n"
    )
    done = here("test", "only", "--file", "t.yaml", "--resources", "files")
    assert (done.status, "output greeting = hello" in done.err) == (0, True), done.err
    missing = here("test", "only", "--file", "t.yaml")
    assert (missing.status, "name it with --resources DIR" in missing.err) == (1, True)
    wrong = here("test", "only", "--file", "t.yaml", "--resources", "files/conf")
    assert (wrong.status, "has none" in wrong.err) == (1, True)


def test_trial_says_what_would_become_a_resource(here: Shoal) -> None:
    Path("p.yaml").write_text(
        "name: p\ntasks:\n"
        "- name: only\n  type: SHELL\n"
        "  params: {script: 'mkdir out; test \"$none\" || echo one > out/a'}\n"
        '  publish: {out/a: "reports/$[yyyy].csv"}\n'
    )
    done = here("test", "only", "--file", "p.yaml", "--date", "2026-01-31")
    assert (done.status, "would publish out/a (4 bytes) as reports/2026.csv" in done.err) == (
        0,
        True,
    )
    none = here("test", "only", "--file", "p.yaml", "-p", "none=true", "--json")
    assert none.status == 1
    assert "out/a is not there" in none.json["result"]["reason"]

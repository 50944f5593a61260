"""Secrets in files of a folder, as Kubernetes and docker mount them."""

import os
from pathlib import Path

import pytest

from shoal.runtime.secret_stores.errors import SecretRefused, StoreUnavailable
from shoal.runtime.secret_stores.stores import SecretStores
from shoal.runtime.settings import ClusterSettings


def stores(folder: Path) -> SecretStores:
    return SecretStores.of(
        ClusterSettings(secret_stores={"files": {"kind": "files", "folder": str(folder)}})
    )


def mounted(folder: Path, version: str, **files: bytes) -> None:
    """Mount files as a kubelet does: links to a link to a folder of their version."""
    (folder / f"..{version}").mkdir(parents=True)
    for name, content in files.items():
        (folder / f"..{version}" / name).write_bytes(content)
        if not (folder / name).is_symlink():
            (folder / name).symlink_to(f"..data/{name}")
    (folder / "..new").symlink_to(f"..{version}")
    os.replace(folder / "..new", folder / "..data")


async def test_mount_of_kubernetes_is_read_and_its_change_too(tmp_path: Path) -> None:
    mounted(tmp_path / "p", "2026_01", password=b"first value\n", raw=b"two\nlines\n\n")
    opened = stores(tmp_path)
    assert await opened.read("p", "files:p/password") == "first value"
    assert await opened.read("p", "files:p/raw") == "two\nlines\n", "one line end is taken off"
    mounted(tmp_path / "p", "2026_02", password=b"second value\r\n")
    assert await opened.read("p", "files:p/password") == "second value"


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("none", "there is no such file"),
        ("folder", "it is not a file"),
        ("pipe", "it is not a file"),
        ("loop", "it is not a file"),
        ("outside", "the file is outside of"),
        ("shared", "every user may write"),
        ("large", "has more than 65,536 bytes"),
        ("binary", "is not UTF-8"),
        ("short", "cannot be a secret: it has less than 4 characters"),
        ("long", "cannot be a secret: it has more than 32,768 bytes"),
        ("good/x", "it is not a file"),
    ],
)
async def test_what_is_no_secret_is_refused(tmp_path: Path, name: str, words: str) -> None:
    folder = tmp_path / "mounted" / "p"
    (folder / "folder").mkdir(parents=True)
    os.mkfifo(folder / "pipe")
    (folder / "loop").symlink_to("loop")
    (tmp_path / "passwd").write_text("of the system")
    (folder / "outside").symlink_to("../../passwd")
    (folder / "good").write_text("a good one")
    (folder / "shared").write_text("a word")
    (folder / "shared").chmod(0o666)
    (folder / "large").write_bytes(b"x" * 70_000)
    (folder / "binary").write_bytes(b"\xff\xfe\xff\xfe")
    (folder / "short").write_text("abc\n")
    (folder / "long").write_bytes(b"x" * 40_000)
    with pytest.raises(SecretRefused, match=words):
        await stores(tmp_path / "mounted").read("p", f"files:p/{name}")


async def test_folder_that_is_not_mounted_may_be_so_later(tmp_path: Path) -> None:
    opened = stores(tmp_path / "later")
    with pytest.raises(StoreUnavailable, match=r"its folder .*/later is not there"):
        await opened.read("p", "files:p/x")
    (tmp_path / "later" / "p").mkdir(parents=True)
    (tmp_path / "later" / "p" / "x").write_text("there now")
    assert await opened.read("p", "files:p/x") == "there now"

"""What a reference into another store may be, and which project may have which."""

from importlib.metadata import EntryPoint
from typing import Any

import pytest

from shoal.runtime.secret_stores import stores as store_kinds
from shoal.runtime.secret_stores.errors import InvalidReference
from shoal.runtime.secret_stores.reference import SecretReference
from shoal.runtime.secret_stores.store import SecretStore, StoreSettings
from shoal.runtime.secret_stores.stores import ENTRY_POINT_GROUP, SecretStores, open_store
from shoal.runtime.settings import ClusterSettings, InvalidSettings


class Drawer(SecretStore[StoreSettings]):
    """A plug-in that keeps what it has in its own code; every path is its own value."""

    def read(self, path: str, field: str | None) -> str:
        """Return the path."""
        return f"value at {path}"


@pytest.fixture(autouse=True)
def drawer(monkeypatch: pytest.MonkeyPatch) -> None:
    """Install the plug-in beside the others, as a package with this entry point would."""
    known = store_kinds.installed()
    point = EntryPoint("drawer", f"{__name__}:Drawer", ENTRY_POINT_GROUP)
    bad = EntryPoint("bad", "pathlib:Path", ENTRY_POINT_GROUP)
    gone = EntryPoint("gone", "no_such_module:X", ENTRY_POINT_GROUP)
    added = {"drawer": point, "bad": bad, "gone": gone}
    monkeypatch.setattr(store_kinds, "installed", lambda: {**known, **added})


def stores(**table: Any) -> SecretStores:
    return SecretStores.of(ClusterSettings(secret_stores={"d": {"kind": "drawer", **table}}))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("vault:shoal/p/db#password", SecretReference("vault", "shoal/p/db", "password")),
        ("files:p/db.password", SecretReference("files", "p/db.password")),
        ("a-1:..x/_y@z", SecretReference("a-1", "..x/_y@z")),
    ],
)
def test_reference_is_read_and_written_alike(text: str, expected: SecretReference) -> None:
    assert SecretReference.parse(text) == expected
    assert str(expected) == text


@pytest.mark.parametrize(
    "text",
    [
        "",
        "p/db",
        "d:",
        "d:/p/x",
        "d:p/x/",
        "d:p//x",
        "d:p/../q/x",
        "d:p/./x",
        "d:..",
        "d:p/x#",
        "d:p/x#a#b",
        "d:p/%2e%2e/q",
        "d:p/x?version=1",
        "d:p/x\n",
        "d:p/a b",
        "D:p/x",
        "d:p/" + "x" * 500,
        "d:p\\..\\q",
        "d:p/\u2025/q",
    ],
)
def test_what_could_lead_elsewhere_is_no_reference(text: str) -> None:
    with pytest.raises(InvalidReference, match="write STORE:PATH"):
        stores().checked("p", text)


@pytest.mark.parametrize(
    ("project", "path"),
    [
        ("p", "shoal/p/db"),
        ("p", "shoal/p/deep/er/db"),
        ("p", "old/db"),
        ("q", "shoal/q/db"),
        ("q", "all/of/us"),
    ],
)
def test_project_reads_its_own_paths_and_those_opened_to_it(project: str, path: str) -> None:
    opened = stores(paths=["shoal/{project}/"], projects={"p": ["old/db"], "*": ["all/"]})
    assert opened.checked(project, f"d:{path}").path == path


@pytest.mark.parametrize(
    ("project", "path"),
    [
        ("q", "shoal/p/db"),
        ("q", "old/db"),
        ("p", "old/db2"),
        ("p", "old/db/x"),
        ("p", "shoal/p2/db"),
        ("p", "shoal/p"),
        ("p", "shoal"),
        ("p", "all"),
        ("p", "SHOAL/p/db"),
        ("*", "shoal/p/db"),
    ],
)
def test_project_reads_no_path_of_another_one(project: str, path: str) -> None:
    opened = stores(paths=["shoal/{project}/"], projects={"p": ["old/db"], "*": ["all/"]})
    with pytest.raises(InvalidReference, match=f"leads to {path} .* may not read; it may: "):
        opened.checked(project, f"d:{path}")


def test_unknown_store_is_named_with_those_that_there_are() -> None:
    with pytest.raises(InvalidReference, match=r"store vault, .* there are: d \(\[cluster"):
        stores().checked("p", "vault:p/x")
    with pytest.raises(InvalidReference, match="there are: none"):
        SecretStores({}).checked("p", "vault:p/x")


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ({"paths": ["shoal/"]}, "one whole part"),
        ({"paths": ["team_{project}/"]}, "one whole part"),
        ({"paths": ["{project}x/{project}/"]}, "one whole part"),
        ({"paths": ["{project}_db"]}, "one whole part"),
        ({"paths": ["{project}/{name}/"]}, "one whole part"),
        ({"paths": ["/{project}/"]}, "is not a path"),
        ({"paths": ["../{project}/"]}, "is not a path"),
        ({"projects": {"p": [""]}}, "is not a path"),
        ({"projects": {"p": ["/"]}}, "is not a path"),
        ({"timeout_s": 0}, "timeout_s"),
        ({"cache_s": 0}, "cache_s"),
        ({"tiemout_s": 1}, "tiemout_s"),
        ({"kind": "drawr"}, "no kind 'drawr' of stores here; installed are: bad, drawer, files"),
        ({"kind": "bad"}, "is not a SecretStore"),
        ({"kind": "gone"}, "cannot be loaded from .*: No module named 'no_such_module'"),
    ],
)
def test_settings_that_would_open_too_much_or_nothing_are_refused(
    table: dict[str, Any], words: str
) -> None:
    with pytest.raises(InvalidSettings, match=words) as raised:
        stores(**table)
    assert "[cluster.secret_stores.d]" in str(raised.value)


async def test_plugin_of_somebody_else_is_read_like_any_other() -> None:
    assert await stores().read("p", "d:p/x") == "value at p/x"
    with pytest.raises(InvalidReference, match="has no fields: leave #f out"):
        stores().checked("p", "d:p/x#f")


def test_store_is_opened_without_being_asked() -> None:
    table = {"kind": "vault", "url": "https://127.0.0.1:1", "token_file": "/nowhere"}
    assert open_store("v", table).name == "v"


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ({"url": "http://vault.example"}, "is not https://"),
        ({"url": "https://user:word@vault.example"}, "is not an https:// address"),
        ({"url": "https://vault.example?x=1"}, "no query"),
        ({}, "url: Field required"),
        ({"url": "https://v", "token_file": None}, "name one of token_file"),
        ({"url": "https://v", "role_id": "r"}, "name one of token_file"),
        ({"url": "https://v", "token_file": None, "role_id": "r"}, "belong together"),
        ({"url": "https://v", "ca": "/nowhere.pem"}, "PEM file /nowhere.pem cannot be used"),
        ({"url": "https://v", "mount": "../sys"}, "mount"),
        ({"url": "https://v", "mount": "a/../sys"}, "mount"),
    ],
)
def test_settings_of_a_vault_are_checked_when_a_process_starts(
    table: dict[str, Any], words: str
) -> None:
    with pytest.raises(InvalidSettings, match=words):
        open_store("v", {"kind": "vault", "token_file": "/t", **table})


@pytest.mark.parametrize("name", ["Vault", "", "a:b", "-a", "a" * 33])
def test_names_of_stores_are_what_stands_in_references(name: str) -> None:
    with pytest.raises(ValueError, match="secret_stores"):
        ClusterSettings(secret_stores={name: {"kind": "files"}})

"""What a database and a tree have to do with each other."""

import pytest

from shoal.coordination.cluster.binding import BindingVerdict, judge, path_of
from shoal.coordination.cluster.layout import Binding, Config, config, read_config
from shoal.core.runs.records import StoredBinding

OURS, OTHER, THEIRS = Binding("t", "c"), Binding("t2", "c"), Binding("t", "c2")


def stored(tree: str | None, address: str = "h:1,h:2/shoal") -> StoredBinding:
    return StoredBinding("c", tree, address, 7, "sqlite:///shoal.db")


@pytest.mark.parametrize(
    ("found", "tree", "path", "verdict"),
    [
        (OURS, "t", "/shoal", BindingVerdict.BOUND),
        (OURS, "t", "/moved", BindingVerdict.BOUND),
        (None, None, "/shoal", BindingVerdict.FREE),
        (OURS, None, "/shoal", BindingVerdict.FREE),
        (THEIRS, None, "/shoal", BindingVerdict.FOREIGN),
        (THEIRS, "t", "/shoal", BindingVerdict.FOREIGN),
        (None, "t", "/shoal", BindingVerdict.WAIT),
        (OTHER, "t", "/shoal", BindingVerdict.WAIT),
        (None, "t", "/typo", BindingVerdict.ELSEWHERE),
        (OTHER, "t", "/typo", BindingVerdict.ELSEWHERE),
        (None, "t", "/", BindingVerdict.ELSEWHERE),
    ],
)
def test_verdict(
    found: Binding | None, tree: str | None, path: str, verdict: BindingVerdict
) -> None:
    assert judge(found, stored(tree), path) is verdict


@pytest.mark.parametrize(
    ("address", "path"),
    [("h:1", "/"), ("h:1/", "/"), ("h:1,h:2/a/b", "/a/b"), ("h:1/a/", "/a"), ("", "/")],
)
def test_path_of_an_address(address: str, path: str) -> None:
    assert path_of(address) == path


def test_binding_is_read_as_it_was_written() -> None:
    assert read_config(config(4, OURS), 3) == Config(4, OURS, 3)
    assert read_config(config(4)) == Config(4, None)


@pytest.mark.parametrize(
    "ids",
    [
        '"tree": "t"',
        '"cluster": "c"',
        '"tree": 1, "cluster": "c"',
        '"tree": "", "cluster": "c"',
        f'"tree": "{"x" * 101}", "cluster": "c"',
        '"tree": ["t"], "cluster": {}',
        '"tree": "\\u0000", "cluster": "c"',
        '"tree": "../..", "cluster": "c"',
    ],
)
def test_ids_that_cannot_be_read_count_as_missing(ids: str) -> None:
    found = read_config(f'{{"version": 1, "partitions": 4, {ids}}}'.encode())
    assert found == Config(4, None)

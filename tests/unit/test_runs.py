"""``make test`` runs every test once."""

from collections import Counter

from tests.support.runs import APART, TESTS, parts


def test_every_file_of_tests_is_in_one_part() -> None:
    found = Counter(
        file
        for paths in parts().values()
        for path in paths
        for file in ([path] if path.is_file() else path.rglob("test_*.py"))
    )
    apart = {file for folder in APART for file in folder.rglob("test_*.py")}
    assert apart
    assert found == Counter(set(TESTS.rglob("test_*.py")) - apart)
    assert set(found.values()) == {1}

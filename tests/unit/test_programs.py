"""A test that is skipped for want of a program fails in CI, which has them all."""

import re
from collections import Counter

import pytest

from tests.support.parts import ROOT
from tests.support.programs import program

#: Skips that no program prevents, by file: rights, kinds of database and system.
OTHERS = {
    "integration/alert/test_conditions.py": 1,
    "integration/alert/test_poison.py": 1,
    "integration/chaos/test_hosts.py": 2,
    "integration/coordination/session/test_server.py": 1,
    "integration/insight/test_export.py": 1,
    "integration/master/engine/test_junk.py": 1,
    "integration/sql/access/test_audit.py": 1,
    "integration/worker/faults/test_restarts.py": 1,
    "integration/worker/supervisor/groups.py": 1,
    "integration/worker/supervisor/test_groups.py": 1,
    "integration/worker/wait/test_looks.py": 1,
    "unit/client/test_data_folder.py": 1,
}


def test_a_program_that_is_missing_skips_and_fails_in_ci(monkeypatch: pytest.MonkeyPatch) -> None:
    assert program("sh").endswith("/sh")
    for ci, raised in (("", pytest.skip.Exception), ("true", pytest.fail.Exception)):
        monkeypatch.setenv("CI", ci)
        with pytest.raises(raised, match=r"no shoal-absent: run tests/provision\.sh"):
            program("shoal-absent")


def test_no_other_skip_is_about_a_program() -> None:
    tests = ROOT / "tests"
    skips = re.compile(r"pytest\.(?:skip\(|mark\.skip|importorskip)")
    found = Counter(
        str(file.relative_to(tests))
        for file in tests.rglob("*.py")
        for _ in skips.finditer(file.read_text(encoding="utf-8"))
    )
    assert found - Counter({"support/programs.py": 1, **OTHERS}) == Counter()

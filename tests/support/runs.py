"""The parts of the suite that run beside each other, each a pytest of its own.

A part shares its servers between its tests (ZooKeeper, PostgreSQL, a cluster), so that more parts
cost more of them; fewer keep one processor waiting at the end.
"""

from collections.abc import Mapping
from pathlib import Path

TESTS = Path(__file__).parents[1]
_ACCEPTANCE = TESTS / "acceptance"
_WORKER = TESTS / "integration" / "worker"
#: Tests with a target of their own, as they need what takes minutes to get.
APART = (TESTS / "hadoop", TESTS / "flink", TESTS / "containers", TESTS / "openid")
# Acceptance tests that have nothing of the cluster that the others share.
_WITHOUT_SHARED_CLUSTER = ("test_chaos.py", "test_demo.py", "test_faults.py", "test_up.py")
# Those that take longest, longest first, so that none of them is under way alone at the end.
_LONG = (
    "integration/worker, types",
    "integration/insight",
    "acceptance, own clusters",
    "acceptance, shared cluster",
    "integration/master",
    "integration/coordination",
    "integration/worker, agent",
    "unit",
    "integration/sql",
    "integration/api",
    "integration/client",
)


def parts() -> Mapping[str, list[Path]]:
    """Return the files and folders of each part by its name, the longest part first."""
    own = [_ACCEPTANCE / name for name in _WITHOUT_SHARED_CLUSTER]
    shared = [path for path in sorted(_ACCEPTANCE.glob("test_*.py")) if path not in own]
    found = {
        "acceptance, own clusters": own,
        "acceptance, shared cluster": shared,
        "unit": [TESTS / "unit"],
    }
    for folder in sorted((TESTS / "integration").iterdir()):
        if any(folder.rglob("test_*.py")) and folder != _WORKER:
            found[f"integration/{folder.name}"] = [folder]
    found["integration/worker, types"] = [path for path in _WORKER.iterdir() if _of_types(path)]
    found["integration/worker, agent"] = sorted(_WORKER.glob("test_*.py"))
    return {name: found[name] for name in sorted(found, key=_rank)}


def _of_types(path: Path) -> bool:
    return path.is_dir() and any(path.rglob("test_*.py"))


def _rank(name: str) -> int:
    return _LONG.index(name) if name in _LONG else len(_LONG)

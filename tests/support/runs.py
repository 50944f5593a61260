"""The parts of the suite, and which of them each command runs.

A part is one pytest process. Its tests share servers (ZooKeeper, PostgreSQL, a cluster), so many
small parts start many servers, and one large part keeps a processor idle at the end.

``make test`` runs every file that ``THOROUGH`` does not name; ``QUICK`` is a selection of them.
``make test-all`` runs the others, the long forms of ``LONG_FORMS``, and the tests of the
coordination library once more with an ensemble of three servers, over TLS and with SASL. Services
that run on SQLite and on PostgreSQL are tested on PostgreSQL by ``make test``, and on SQLite by
``make test-all``; repositories and drivers are tested on both by ``make test``.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from tests.support import length
from tests.support.database import turns
from tests.support.database.turns import Turn
from tests.support.zookeeper import ENSEMBLE

TESTS = Path(__file__).parents[1]
#: Tests with a make target of their own: each needs a program that takes minutes to fetch.
SEPARATE = ("hadoop", "flink", "containers", "openid", "trino")


class Share(StrEnum):
    """What one command runs."""

    QUICK = "quick"  # a first answer in about three minutes
    MAIN = "main"  # make test
    REST = "rest"  # what make test-all runs after it
    ALL = "all"  # both


#: Globs, relative to ``tests``, of what ``make test`` leaves to ``make test-all``: long scenarios,
#: and further tests with Spark, Chromium or a cluster of their own. Each such system keeps at least
#: one smoke test in ``make test``.
THOROUGH = (
    # Scenarios in which processes die for minutes
    "acceptance/faults/test_chaos.py",
    "acceptance/faults/test_clocks.py",
    "acceptance/faults/test_faults.py",
    "acceptance/faults/test_rotation_kills.py",
    "integration/chaos",
    "integration/kills",
    "integration/bench",
    # Chromium: ui/test_authoring.py stays
    "acceptance/ui/test_pages.py",
    "acceptance/ui/test_alerting.py",
    "acceptance/ui/test_grouping.py",
    "acceptance/ui/test_insight.py",
    "acceptance/ui/test_managing.py",
    "acceptance/ui/test_robust.py",
    # Spark: test_demo.py, worker/sql/test_spark.py and insight/test_jobs.py stay
    "acceptance/test_insight.py",
    "acceptance/test_examples.py",
    "integration/worker/mapreduce",
    "integration/worker/spark",
    "integration/worker/sql/test_hive.py",
    "integration/worker/spark/test_agent_spark_standalone.py",
    # Servers of an ensemble die and stand still
    "integration/coordination/test_ensemble_faults.py",
    # Examples of the coordination library, and days of runs that come late
    "integration/examples/test_coordination.py",
    "integration/insight/test_late.py",
    # Every operation of the API, several times
    "acceptance/test_bad_inputs.py",
    "acceptance/test_canaries.py",
    "acceptance/faults/test_requests.py",
    "integration/api/web/test_conformance.py",
)
#: Services whose tests run on one database at a time.
ONE_DATABASE = ("integration/alert", "integration/insight", "integration/master")
#: Files that use ``tests.support.length``: ``make test-all`` repeats them with all their cases.
LONG_FORMS = (
    "integration/master/engine/test_large_batches.py",
    "integration/master/upkeep/test_purge_waits.py",
    "unit/client/sdk/test_sdk_types.py",
    "unit/coordination/group/test_group_simulation.py",
    "unit/coordination/actors/test_actors_under_faults.py",
    "unit/core/decide/test_decide_model.py",
)
#: What ``make quick`` runs, beside the checks that need no build.
QUICK = (
    "unit/test_*.py",
    "unit/core",
    "unit/coordination",
    "unit/master",
    "unit/worker",
    "integration/sql/runs/test_fencing.py",
    "integration/coordination/session/test_session.py",
    "acceptance/test_quick.py",
)


@dataclass(frozen=True, slots=True)
class Part:
    """One pytest process: its name, the files that it runs and variables for it."""

    name: str
    files: tuple[Path, ...]
    variables: Mapping[str, str] = field(default_factory=dict)


def parts(share: Share) -> list[Part]:
    """Return the parts of ``share`` that have any files, by name."""
    if share is Share.ALL:
        return [*parts(Share.MAIN), *parts(Share.REST)]
    thorough = set(_files(THOROUGH))
    chosen = {
        Share.QUICK: set(_files(QUICK)) - thorough,
        Share.MAIN: set(every_file()) - thorough,
        Share.REST: thorough,
    }[share]
    grouped: dict[str, list[Path]] = {}
    for file in sorted(chosen):
        grouped.setdefault(_part_of(file.relative_to(TESTS)), []).append(file)
    first, second = ({turns.VARIABLE: each} for each in (Turn.FIRST, Turn.SECOND))
    found = [
        Part(name, tuple(files), first if share is Share.MAIN and name in ONE_DATABASE else {})
        for name, files in sorted(grouped.items())
    ]
    if share is Share.REST:
        long_forms = tuple(_files(LONG_FORMS))
        found.append(Part("long forms", long_forms, {length.VARIABLE: "1"}))
        again = set(_files(ONE_DATABASE)) - thorough - {*long_forms}
        found.append(Part("second database", tuple(sorted(again)), second))
        library = {*_files(("integration/coordination",))} - thorough
        found.append(Part("coordination, ensemble", tuple(sorted(library)), {ENSEMBLE: "1"}))
    return found


def every_file() -> list[Path]:
    """Return all files of tests that are not ``SEPARATE``."""
    return sorted(
        file
        for file in TESTS.rglob("test_*.py")
        if file.relative_to(TESTS).parts[0] not in SEPARATE
    )


def _files(globs: tuple[str, ...]) -> Iterator[Path]:
    for glob in globs:
        for path in sorted(TESTS.glob(glob)):
            yield from [path] if path.is_file() else sorted(path.rglob("test_*.py"))


def _part_of(file: Path) -> str:
    """Return the part of a file, which is given relative to ``tests``."""
    level, *folders = file.parts[:-1]
    if level == "acceptance":
        own = file.name in _OWN_CLUSTERS
        return "acceptance, own clusters" if own else "acceptance, shared cluster"
    if level == "unit":
        return "unit/core" if folders[:1] == ["core"] else "unit, others"
    if folders[0] == "worker":
        return f"integration/worker, {'agent' if _AGENT.issuperset(folders[1:]) else 'types'}"
    return f"integration/{folders[0]}"


#: Acceptance tests that do not use the cluster that the others share.
_OWN_CLUSTERS = ("test_chaos.py", "test_demo.py", "test_faults.py", "test_quick.py", "test_up.py")
#: Rooms of ``integration/worker`` about the worker itself; the others are about task types.
_AGENT = {"agent", "faults", "logs", "supervisor"}

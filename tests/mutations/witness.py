"""A pytest plugin that writes down how each test ended, and whose code was used.

The file named by SHOAL_MUTATION_REPORT gets one JSON object: ``tests`` (see ``report.Outcome``)
and ``foreign``, the modules of Shoal that were not loaded from the folder pytest runs in.
"""

import json
import os
import sys
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import pytest

VARIABLE = "SHOAL_MUTATION_REPORT"


class Witness:
    """Collects what happens in one session."""

    def __init__(self, root: Path, report: Path) -> None:
        self._root, self._report = root, report
        self._tests: list[dict[str, Any]] = []
        self._took_s: dict[str, float] = {}  # by test, all its phases

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        report = yield
        self._took_s[item.nodeid] = self._took_s.get(item.nodeid, 0.0) + report.duration
        if report.when == "call" or not report.passed:
            error = None if call.excinfo is None else call.excinfo.value
            self._note(item.nodeid, report.when or "", report.outcome, error)
        return report

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self._note(report.nodeid, "collect", report.outcome, None)

    def _note(self, test: str, phase: str, outcome: str, error: BaseException | None) -> None:
        errors = [] if error is None else [type(leaf).__name__ for leaf in _leaves(error)]
        said = "" if error is None else f"{type(error).__name__}: {error}"
        line = said.strip().partition("\n")[0][:300]
        self._tests.append(
            {"test": test, "phase": phase, "outcome": outcome, "errors": errors, "said": line}
        )

    def pytest_sessionfinish(self) -> None:
        files = {
            name: getattr(module, "__file__", None)
            for name, module in sys.modules.items()
            if name.startswith(("shoal.", "tests."))
        }
        foreign = [
            name
            for name, file in files.items()
            if file is not None and not Path(file).resolve().is_relative_to(self._root)
        ]
        tests = [{**each, "took_s": self._took_s.get(each["test"], 0.0)} for each in self._tests]
        found = {"tests": tests, "foreign": sorted(foreign)}
        self._report.write_text(json.dumps(found))


def _leaves(error: BaseException) -> Iterator[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        for each in error.exceptions:
            yield from _leaves(each)
    else:
        yield error


def pytest_configure(config: pytest.Config) -> None:
    """pytest's entry: ``-p tests.mutations.witness``."""
    witness = Witness(config.rootpath.resolve(), Path(os.environ[VARIABLE]))
    config.pluginmanager.register(witness, "witness of mutations")

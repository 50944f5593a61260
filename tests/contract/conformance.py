"""Requests that follow from the description, and whether the answers keep to it (schemathesis).

Each operation is asked first with a request that has to succeed, then with what its description
allows, and then with what it does not allow.
"""

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import requests
import schemathesis
from hypothesis import HealthCheck, Phase, Verbosity, given, seed, settings
from hypothesis.errors import HypothesisException
from hypothesis.strategies import SearchStrategy
from schemathesis import Case, GenerationMode
from schemathesis.checks import CHECKS, load_all_checks
from schemathesis.config import SchemathesisConfig
from schemathesis.core.result import Ok
from schemathesis.schemas import APIOperation

from shoal.api.web.sse import MEDIA_TYPE as STREAM

Case_: TypeAlias = Case[Any]
Operation: TypeAlias = APIOperation[Any, Any, Any, Any]
TIMEOUT_S = 60.0
# What a single request cannot show: these look at the ones before, or send others.
_OF_SEQUENCES = ("use_after_free", "ensure_resource_availability", "ignored_auth")
# A good request may be about what is not there, or not as it was; no schema knows that.
_EXPECTED = {
    "positive_data_acceptance": {
        "expected-statuses": ["2xx", "401", "403", "404", "409", "412", "428", "429", "503"]
    }
}
# Rules that no schema can say: the check of what has to be accepted knows none of them. Cursors are
# not for callers to make, either.
RULES = {
    "publishWorkflow": "definitions have a check of their own, which says all that is wrong",
    "previewExpression": "cron expressions, names of time zones",
    "putDataSource": "what each kind requires",
    "putEnvironment": "names of variables, and which of them are not for everybody",
    "discardQuarantinedItem": "items of alert servers",
    "createPurge": "a workflow needs its project",
    "uploadResource": "characters that no path may have",
    "createUser": "passwords that are tried first",
    "changePassword": "the same",
    **dict.fromkeys(
        ("publishDraft", "validateWorkflow", "planWorkflow", "importProject"),
        "as publish; a text or a definition",
    ),
    "createBulkCommands": "ids, or filters with their digest",
    "createBulkSchedules": "ids, or a project",
    "putLayout": "a task is in one group at most, and groups that are folded are there",
    "getDependencyGraph": "days of which a month before and after exists",
    "previewStart": "a text that is a definition, or a version",
    "changeLabels": "the form of names and values of labels",
    "searchLog": "a text or a pattern, which has to be one",
    "searchLogs": "the same",
    "putIdentity": "issuers and subjects without control characters",
    "putSecret": "a value or a reference, to a store that there is",
    "putResourceGrant": "paths of files and folders",
    "listWorkflowDays": "names of time zones",
    "getToday": "at most 31 days",
    **dict.fromkeys(
        ("getInsightSummary", "listInsightWorkflows", "listInsightFailures", "getInsightLoad"),
        "at most 92 days",
    ),
    "listInsightRollupRows": "a job",
    "listInsightTasks": "the same, and project and workflow",
    "listInsightCosts": "the same, and a project where it is by task",
    "putAlertRule": "receivers that there are; what triggers need",
    "previewAlert": "what triggers need; templates that can be read",
    "putAlertReceiver": "channels that there are",
    "putAlertChannel": "what each kind requires; secrets that there are",
    "createAlertSilence": "an end in the future, behind the beginning",
    "listAlertExplanations": "a run or an event",
    "listPastInstances": "a first day that is not behind the last one",
    "createBackfill": "from and to, or dates; what fits the schedules of the workflow",
}


@dataclass(frozen=True)
class Good:
    """A request that has to succeed."""

    headers: Mapping[str, str]
    path: Mapping[str, Any]
    body: Any = None
    query: Mapping[str, Any] = field(default_factory=dict)


@dataclass
class Report:
    """What was found."""

    requests: int = 0
    failures: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)  # what has to succeed, and did not
    answers: dict[str, Any] = field(default_factory=dict)  # the JSON of the first, by operation


def run(
    description: dict[str, Any], url: str, good: Mapping[str, Good], examples: int, start: int
) -> Report:
    """Ask every operation, deletions last; ``examples``: requests of each kind for each.

    ``good``: by the id of the operation.
    """
    load_all_checks()
    config = SchemathesisConfig.from_dict({"checks": _EXPECTED})
    schema = schemathesis.openapi.from_dict(description, config=config)
    report = Report()
    found = [result.ok() for result in schema.get_all_operations() if isinstance(result, Ok)]
    with requests.Session() as session:
        runs = [_Run(report, _name(one), one, url, session) for one in sorted(found, key=_order)]
        others = [one for one in runs if one.name not in _LAST]
        for each in others:
            each.succeed(good[each.name])
        for each in others:  # what was deleted is made again
            if each.operation.method == "put":
                each.succeed(good[each.name])
        for each in others:
            each.all(good[each.name], examples, start)
        for each in (one for one in runs if one.name in _LAST):
            each.succeed(good[each.name])
            each.all(good[each.name], examples, start)
    return report


# They end the session that the others need.
_LAST = ("changePassword", "logout")


def _name(operation: Operation) -> str:
    name: str = operation.definition.raw["operationId"]
    return name


def _order(operation: Operation) -> tuple[bool, int]:
    """Deletions last, and of these what is within something before it."""
    return operation.method == "delete", -operation.path.count("/")


@dataclass
class _Run:
    """The requests to one operation."""

    report: Report
    name: str
    operation: Operation
    url: str
    session: requests.Session

    def succeed(self, good: Good) -> None:
        """Send the request that has to succeed."""
        content = self.operation.definition.raw.get("requestBody", {}).get("content", {"": {}})
        media_type = next(iter(content)) or None
        body = {} if good.body is None else {"body": good.body, "media_type": media_type}
        path, query = self._path(good), dict(good.query)
        case = self.operation.Case(path_parameters=path, query=query, **body)
        answer = self._one(case, good.headers)
        if not answer.startswith("2"):
            self.report.refused.append(f"{self.name}: {answer}")

    def all(self, good: Good, examples: int, start: int) -> None:
        """Send what the description allows, and what it does not."""
        if not self._is_stream:
            for strategy in self._strategies(self._path(good)):
                self._some(strategy, good.headers, examples, start)

    def _path(self, good: Good) -> dict[str, Any]:
        return {one.name: good.path[one.name] for one in self.operation.path_parameters}

    @property
    def _is_stream(self) -> bool:
        answers = self.operation.definition.raw["responses"].get("200", {})
        return STREAM in answers.get("content", {})

    def _strategies(self, path: dict[str, Any]) -> Iterator[SearchStrategy[Case_]]:
        yield self.operation.as_strategy(path_parameters=path)
        if path:
            yield self.operation.as_strategy()
        for mode in (GenerationMode.NEGATIVE,):
            with suppress(HypothesisException):
                yield self.operation.as_strategy(mode, path_parameters=path)

    def _some(
        self, strategy: SearchStrategy[Case_], headers: Mapping[str, str], examples: int, start: int
    ) -> None:
        @seed(start)
        @settings(
            max_examples=examples,
            database=None,
            deadline=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
            verbosity=Verbosity.quiet,
        )
        @given(case=strategy)
        def ask(case: Case_) -> None:
            self._one(case, headers)

        try:
            ask()
        except HypothesisException as error:
            if "Unsatisfiable" not in type(error).__name__:
                raise

    def _one(self, case: Case_, headers: Mapping[str, str]) -> str:
        """Send a request and note what is wrong with the answer; return its status and text."""
        self.report.requests += 1
        case.headers.update(headers)
        if self._is_stream:
            return self._first_bytes(case)
        response = case.call(base_url=self.url, session=self.session, timeout=TIMEOUT_S)
        is_json = "application/json" in response.headers.get("content-type", ())
        if is_json and response.status_code in (200, 201, 202):
            self.report.answers.setdefault(self.name, response.json())
        is_ruled = self.name in RULES or "cursor" in (case.query or {}) or _is_odd(case.body)
        rules = ("positive_data_acceptance",) if is_ruled else ()
        excluded: Any = [CHECKS.get_one(one) for one in (*_OF_SEQUENCES, *rules)]
        try:
            case.validate_response(response, excluded_checks=excluded)
        except BaseExceptionGroup as group:
            self._note(case, response, group.exceptions)
        except AssertionError as failure:
            self._note(case, response, [failure])
        return f"{response.status_code} {response.content[:300]!r}"

    def _note(self, case: Case_, response: Any, failures: Any) -> None:
        if b"/problems/no-worker" in response.content:
            return  # there is a worker of one group alone
        for failure in failures:
            body = "" if not case.body else f" {case.body!r:.300}"
            asked = f"{case.method} {case.formatted_path}?{case.query}{body}"
            text = f"{self.name}: {failure!s:.600}\n  {asked}\n  {response.status_code}"
            self.report.failures.append(f"{text} {response.content[:300]!r}")

    def _first_bytes(self, case: Case_) -> str:
        """A stream has no end: look at its beginning."""
        asked = case.as_transport_kwargs(base_url=self.url)
        with self.session.request(**asked, stream=True, timeout=TIMEOUT_S) as response:
            if response.status_code == 200:
                next(response.iter_content(1))
            return f"{response.status_code} {response.headers['content-type']}"


def _is_odd(value: Any) -> bool:
    """Say whether something is good for JSON Schema and for us not: 1.0 as an id, NUL in a text."""
    match value:
        case dict():
            return any(_is_odd(inner) for one in value.items() for inner in one)
        case list():
            return any(_is_odd(inner) for inner in value)
        case str():
            return "\0" in value
        case _:
            return isinstance(value, float) and value.is_integer()

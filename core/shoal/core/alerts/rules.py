"""Rules: which occurrences are alerts, and who is notified of them."""

from collections.abc import Mapping
from enum import StrEnum
from fnmatch import fnmatchcase
from typing import Annotated

from pydantic import Field, StrictBool, StrictStr, model_validator

from shoal.core.alerts.conditions import Deadline, SuccessRate
from shoal.core.alerts.occurrences import OF_CLUSTER, OF_WORKFLOWS, Occurrence, Trigger
from shoal.core.alerts.times import QuietHours
from shoal.core.definition.fields import Duration, Name, Strict

MOST_NAMES = 100  # of workflows, tasks or labels in a rule
MOST_RECEIVERS = 20
LONGEST_GROUPING_S = 24 * 3600.0
SHORTEST_REPEAT_S = 60.0

Pattern = Annotated[StrictStr, Field(min_length=1, max_length=200)]
Label = Annotated[StrictStr, Field(pattern=r"^[^=\s]{1,100}(=.{0,200})?$")]


class Severity(StrEnum):
    """How much an alert matters. The later ones matter more."""

    INFO = "info"
    WARNING = "warning"
    CRITICAL = "critical"


class Language(StrEnum):
    """What messages are written in."""

    ENGLISH = "en"
    CHINESE = "zh"


class Escalation(Strict):
    """Who is notified as well of an alert that goes on without an acknowledgement."""

    after: Duration = Field(description="After the first message, such as 15m.")
    receivers: tuple[Name, ...] = Field(min_length=1, max_length=MOST_RECEIVERS)


class MessageTemplates(Strict):
    """Liquid templates of what messages say instead of the usual; empty: the usual.

    They know what webhooks are sent: docs/alerts.md lists it.
    """

    subject: StrictStr = Field(default="", max_length=1_000)
    text: StrictStr = Field(default="", max_length=20_000)


class RuleSpec(Strict):
    """A rule as people define it, without its name."""

    triggers: tuple[Trigger, ...] = Field(
        min_length=1, max_length=len(Trigger), description="What it is about: one of these."
    )
    workflows: tuple[Pattern, ...] = Field(
        default=(),
        max_length=MOST_NAMES,
        description="Names or patterns such as `load-*`; none: all of the project.",
    )
    tasks: tuple[Pattern, ...] = Field(
        default=(), max_length=MOST_NAMES, description="The same for triggers of tasks."
    )
    labels: tuple[Label, ...] = Field(
        default=(),
        max_length=MOST_NAMES,
        description="KEY=VALUE, or KEY for any value: a run has to have all of them.",
    )
    receivers: tuple[Name, ...] = Field(
        min_length=1,
        max_length=MOST_RECEIVERS,
        description="Names of the receivers to notify.",
    )
    deadline: Deadline | None = Field(
        default=None, description="Of workflow.not-started and workflow.not-finished."
    )
    no_success_for: Duration | None = Field(
        default=None, ge=60, description="Of workflow.no-success, such as 26h."
    )
    success_rate: SuccessRate | None = Field(
        default=None, description="Of workflow.low-success-rate."
    )
    severity: Severity = Severity.WARNING
    enabled: StrictBool = True
    group_for: Duration = Field(
        default=30.0,
        le=LONGEST_GROUPING_S,
        description="How long to collect what belongs together before the first message. What "
        "recovers meanwhile is not sent.",
    )
    repeat_every: Duration | None = Field(
        default=None,
        ge=SHORTEST_REPEAT_S,
        description="Repeat the notification at this interval while the alert is open and not "
        "acknowledged; null: notify once.",
    )
    tell_recovery: StrictBool = Field(
        default=True, description="Whether to notify the same receivers when the alert is resolved."
    )
    quiet: tuple[QuietHours, ...] = Field(
        default=(),
        max_length=20,
        description="When messages wait for the end of these hours. Critical ones never wait.",
    )
    escalation: tuple[Escalation, ...] = Field(default=(), max_length=10)
    language: Language = Language.ENGLISH
    templates: MessageTemplates = MessageTemplates()
    description: StrictStr = Field(default="", max_length=2000)

    @model_validator(mode="after")
    def _escalates_in_order(self) -> "RuleSpec":
        times = [one.after for one in self.escalation]
        if times != sorted(set(times)):
            raise ValueError("escalation: each step must be later than the one before it")
        return self

    @model_validator(mode="after")
    def _knows_what_it_watches(self) -> "RuleSpec":
        wanted = set(self.triggers)
        for field, triggers in _SETTINGS.items():
            named = [one for one in triggers if one in wanted]
            if named and getattr(self, field) is None:
                raise ValueError(f"{field}: {named[0]} needs it")
            if not named and getattr(self, field) is not None:
                raise ValueError(f"{field}: only {' and '.join(triggers)} use it")
        if wanted & OF_WORKFLOWS and not self.workflows:
            raise ValueError("workflows: name those that are watched, or * for all")
        if wanted & OF_WORKFLOWS and self.labels:
            raise ValueError("labels: runs have them; a rule that watches workflows cannot ask")
        if wanted & OF_CLUSTER and wanted - OF_CLUSTER:
            raise ValueError("triggers: what is about the cluster needs a rule of its own")
        if wanted & OF_CLUSTER and (self.workflows or self.tasks or self.labels):
            raise ValueError("triggers: what is about the cluster has no workflows, tasks, labels")
        return self

    @property
    def named(self) -> frozenset[str]:
        """All receivers that it names."""
        return frozenset(self.receivers).union(*(one.receivers for one in self.escalation))


_SETTINGS = {
    "deadline": (Trigger.WORKFLOW_NOT_STARTED, Trigger.WORKFLOW_NOT_FINISHED),
    "no_success_for": (Trigger.WORKFLOW_NO_SUCCESS,),
    "success_rate": (Trigger.WORKFLOW_LOW_SUCCESS_RATE,),
}


def fits(patterns: tuple[str, ...], name: str) -> bool:
    """Say whether a name is one of these, or there are none to fit."""
    return not patterns or any(fnmatchcase(name, pattern) for pattern in patterns)


def mismatch(
    name: str, rule: RuleSpec, happened: Occurrence, labels: Mapping[str, str] | None
) -> str | None:
    """Return why the rule ``name`` of the same project is not about an occurrence; None: it is.

    ``labels`` of the run; None: they are not known yet, and judged as if they fitted.
    """
    if not rule.enabled:
        return "the rule is disabled"
    if happened.rule not in (None, name):
        return f"only rule {happened.rule} watches this"
    if happened.trigger not in rule.triggers:
        return f"the rule is not about {happened.trigger}"
    if not fits(rule.workflows, happened.workflow):
        return f"the rule is not about workflow {happened.workflow}"
    if happened.task is not None and not fits(rule.tasks, happened.task):
        return f"the rule is not about task {happened.task}"
    if labels is None:
        return None
    for wanted in rule.labels:
        key, equals, value = wanted.partition("=")
        if key not in labels or (equals and labels[key] != value):
            return f"the run has no label {wanted}"
    return None

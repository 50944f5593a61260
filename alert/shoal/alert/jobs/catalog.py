"""Rules, receivers, channels and silences of all projects, read when they have changed."""

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field
from datetime import datetime
from typing import TypeVar

import structlog
from pydantic import BaseModel

from shoal.core.alerts.occurrences import Occurrence, Trigger
from shoal.core.alerts.receivers import ChannelSpec, ReceiverSpec
from shoal.core.alerts.records import Alert, AlertSilence, DefinitionKind, StoredAlertDefinition
from shoal.core.alerts.rules import RuleSpec, fits, mismatch
from shoal.sql import UnitOfWork

log = structlog.get_logger()

MOST_SILENCES = 10_000  # of all projects that are heeded

Named = tuple[str, str]  # project, name
S = TypeVar("S", bound=BaseModel)


@dataclass(frozen=True)
class Rule:
    """A rule with its name, and since when there is one of the name."""

    name: str
    spec: RuleSpec
    since: datetime

    def is_about(self, happened: Occurrence, labels: Mapping[str, str] | None = None) -> bool:
        """Say whether it is; ``labels`` of the run, None: they are not known yet."""
        if happened.at < self.since:
            return False
        return mismatch(self.name, self.spec, happened, labels) is None

    def watches(self, triggers: Set[Trigger]) -> list[Trigger]:
        """Return which of these it is about, if it is enabled."""
        return sorted(triggers & set(self.spec.triggers)) if self.spec.enabled else []


@dataclass
class Catalog:
    """What is defined. ``refresh`` it in a transaction before it is used."""

    rules: dict[str, dict[str, Rule]] = field(default_factory=dict)  # project, name
    receivers: Mapping[Named, ReceiverSpec] = field(default_factory=dict)
    channels: Mapping[Named, ChannelSpec] = field(default_factory=dict)
    silences: Sequence[AlertSilence] = ()
    _changes: int = -1

    async def refresh(self, uow: UnitOfWork, now: datetime) -> bool:
        """Read everything anew if something was changed; return whether it was."""
        changes = await uow.alert_jobs.changes()
        if changes == self._changes:
            return False
        self.silences = await uow.alert_definitions.silences(None, now, limit=MOST_SILENCES)
        rules: dict[str, dict[str, Rule]] = {}
        receivers, channels = {}, {}
        for one in await uow.alert_definitions.all():
            match one.kind:
                case DefinitionKind.RULE if (rule := _parsed(one, RuleSpec)) is not None:
                    found = Rule(one.name, rule, one.created_at)
                    rules.setdefault(one.project, {})[one.name] = found
                case DefinitionKind.RECEIVER if (spec := _parsed(one, ReceiverSpec)) is not None:
                    receivers[one.project, one.name] = spec
                case DefinitionKind.CHANNEL if (channel := _parsed(one, ChannelSpec)) is not None:
                    channels[one.project, one.name] = channel
        self.rules, self.receivers, self.channels = rules, receivers, channels
        self._changes = changes
        return True

    def rule(self, project: str, name: str) -> RuleSpec | None:
        """Return a rule, if there is one still."""
        found = self.rules.get(project, {}).get(name)
        return None if found is None else found.spec

    def silence(self, about: Occurrence | Alert, rule: str, now: datetime) -> AlertSilence | None:
        """Return what covers this now; None: nothing does."""
        for one in self.silences:
            if (
                one.project == about.project
                and one.since <= now < one.until
                and fits((one.workflow,) if one.workflow else (), about.workflow)
                and fits((one.task,) if one.task else (), about.task or "")
                and fits((one.rule,) if one.rule else (), rule)
            ):
                return one
        return None


def _parsed(one: StoredAlertDefinition, kind: type[S]) -> S | None:
    try:
        return kind.model_validate(one.spec)
    except Exception as error:  # noqa: BLE001 - it stops nothing but itself
        log.warning(
            "a definition for alerts cannot be used",
            project=one.project,
            kind=one.kind,
            name=one.name,
            error=str(error),
        )
        return None

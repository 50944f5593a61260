"""Whether a rule is about an occurrence, and if not, why not."""

from collections.abc import Mapping

from shoal.core.alerts.occurrences import Occurrence
from shoal.core.alerts.rules import RuleSpec, fits


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

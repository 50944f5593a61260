"""What the agent tells the process of an attempt, through its standard input."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Self

from shoal.core.data_sources import DataSource


@dataclass(frozen=True)
class WorkRequest:
    """One piece of work. ``work`` is ``module:function``, ``params`` the type's, as JSON values.

    ``settle``: do not begin anything, end what this attempt has left running elsewhere.
    """

    work: str
    task_type: str  # ``module:class``, whose Params are
    params: Mapping[str, Any]
    parameters: Mapping[str, str]
    task_instance_id: int
    attempt: int
    tag: str
    secrets: Mapping[str, str] = field(default_factory=dict, repr=False)
    data_sources: Mapping[str, DataSource] = field(default_factory=dict, repr=False)
    settings: Mapping[str, str] = field(default_factory=dict, repr=False)  # see TaskContext
    timeout_s: float | None = None
    settle: bool = False
    looks: int = 0  # see TaskContext
    waiting_since: float | None = None

    def to_json(self) -> str:
        """Return the text that ``from_json`` reads."""
        return json.dumps(asdict(self), ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Build it from a text that ``to_json`` made. Raises ValueError, TypeError, KeyError."""
        fields = json.loads(text)
        sources = {
            name: DataSource(**source) for name, source in fields.pop("data_sources").items()
        }
        return cls(**fields, data_sources=sources)

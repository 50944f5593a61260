"""The five priority levels of workflows and tasks; lower numbers go first."""

from enum import IntEnum
from typing import Any, Literal, TypeAlias

PriorityName: TypeAlias = Literal["HIGHEST", "HIGH", "MEDIUM", "LOW", "LOWEST"]


class Priority(IntEnum):
    """HIGHEST (0) to LOWEST (4). Files and the API use the names."""

    HIGHEST = 0
    HIGH = 1
    MEDIUM = 2
    LOW = 3
    LOWEST = 4

    @classmethod
    def read(cls, value: Any) -> "Priority":
        """Return the level for a name (any case) or number. Raises ValueError naming all."""
        if isinstance(value, str) and value.upper() in cls.__members__:
            return cls[value.upper()]
        if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= 4:
            return cls(value)
        raise ValueError(f"must be one of {', '.join(cls.__members__)} (or 0 to 4)")

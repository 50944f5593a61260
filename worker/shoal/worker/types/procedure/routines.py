"""Routines as a catalogue describes them, and the choice among those of one name."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from shoal.worker.types.child.outcome import WorkFailed

_NAME = re.compile(r"(?P<name>[^()]*[^()\s])\s*(?:\((?P<types>.*)\))?", re.DOTALL)
_MOST_LISTED = 20  # signatures in a message


class Mode(StrEnum):
    """Which way a parameter goes."""

    IN = "IN"
    OUT = "OUT"
    INOUT = "INOUT"


@dataclass(frozen=True)
class RoutineParameter:
    """One parameter of a routine. ``name`` may be empty."""

    name: str
    mode: Mode
    type_name: str
    is_optional: bool = False

    @property
    def goes_in(self) -> bool:
        """Whether it takes a value."""
        return self.mode is not Mode.OUT

    @property
    def comes_out(self) -> bool:
        """Whether it returns a value."""
        return self.mode is not Mode.IN

    def __str__(self) -> str:
        mode = "" if self.mode is Mode.IN else self.mode.value
        default = "= default" if self.is_optional else ""
        return " ".join(filter(None, (mode, self.name, self.type_name, default)))


@dataclass(frozen=True)
class Routine:
    """A procedure, or a function: it ``returns`` a type then. ``name`` is qualified."""

    name: str
    parameters: tuple[RoutineParameter, ...]
    returns: str | None = None
    returns_rows: bool = False

    def key(self, parameter: RoutineParameter) -> str:
        """Return what arguments and outputs call a parameter: its name, else its place."""
        return parameter.name or str(self.parameters.index(parameter) + 1)

    @property
    def inputs(self) -> Mapping[str, RoutineParameter]:
        """The parameters that take values, by what arguments call them."""
        return {self.key(one): one for one in self.parameters if one.goes_in}

    @property
    def types(self) -> tuple[str, ...]:
        """The types of the parameters that take values."""
        return tuple(_plain(one.type_name) for one in self.inputs.values())

    def __str__(self) -> str:
        kind = "procedure" if self.returns is None else "function"
        returned = f" returns {self.returns}" if self.returns is not None else ""
        return f"{kind} {self.name}({', '.join(map(str, self.parameters))}){returned}"


def split_name(written: str) -> tuple[str | None, str, tuple[str, ...] | None]:
    """Return schema, name and types of ``schema.name(type, …)``; None for what is not written.

    Raises WorkFailed.
    """
    found = _NAME.fullmatch(written.strip())
    if found is None:
        text = f"{written!r} is not a name of a routine, such as close_day or sales.close_day(date)"
        raise WorkFailed(text, permanent=True)
    schema, _, name = found["name"].rpartition(".")
    types = found["types"]
    if types is None:
        return schema or None, name, None
    return schema or None, name, tuple(_plain(one) for one in _split_types(types))


def chosen(
    written: str,
    candidates: Sequence[Routine],
    arguments: Mapping[str, object],
    types: tuple[str, ...] | None,
) -> Routine:
    """Return the routine that is meant. Raises WorkFailed, with the signatures that there are."""
    if not candidates:
        text = (
            f"there is no procedure or function {written!r} that the user of the data source can "
            "see: is its schema written, and may the user execute it?"
        )
        raise WorkFailed(text, permanent=True)
    fitting = [one for one in candidates if types is None or one.types == types]
    fitting = [one for one in fitting if _takes(one, arguments)]
    # Of several, the one that leaves nothing to a default.
    exact = [one for one in fitting if one.inputs.keys() == arguments.keys()]
    for group in (fitting, exact):
        if len(group) == 1:
            return group[0]
    raise WorkFailed(_why(written, candidates, fitting, arguments), permanent=True)


def _takes(routine: Routine, arguments: Mapping[str, object]) -> bool:
    required = {key for key, one in routine.inputs.items() if not one.is_optional}
    return required <= arguments.keys() <= routine.inputs.keys()


def _why(
    written: str,
    candidates: Sequence[Routine],
    fitting: Sequence[Routine],
    arguments: Mapping[str, object],
) -> str:
    given = ", ".join(arguments) or "none"
    if fitting:
        what = f"several routines {written!r} take these arguments ({given}); write the types"
    elif len(candidates) == 1:
        what = f"{written!r} does not take these arguments: {_difference(candidates[0], arguments)}"
    else:
        what = f"no routine {written!r} takes these arguments ({given})"
    listed = "\n  ".join(map(str, (fitting or candidates)[:_MOST_LISTED]))
    return f"{what}. There is:\n  {listed}"


def _difference(routine: Routine, arguments: Mapping[str, object]) -> str:
    unknown = [key for key in arguments if key not in routine.inputs]
    missing = [
        key for key, one in routine.inputs.items() if key not in arguments and not one.is_optional
    ]
    parts = [f"it has no {', '.join(unknown)}" if unknown else ""]
    parts.append(f"it needs {', '.join(missing)}" if missing else "")
    return "; ".join(filter(None, parts)) or "its types are others"


def _split_types(text: str) -> list[str]:
    parts, depth, begin = [], 0, 0
    for index, character in enumerate(text):
        depth += {"(": 1, ")": -1}.get(character, 0)
        if character == "," and depth == 0:
            parts.append(text[begin:index])
            begin = index + 1
    parts.append(text[begin:])
    return [part for part in parts if part.strip()]


def _plain(type_name: str) -> str:
    return " ".join(type_name.lower().split())

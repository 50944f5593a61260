"""Which routine of a database is meant, and what is said when none is."""

import pytest

from shoal.worker.types.child.outcome import WorkFailed
from shoal.worker.types.procedure.routines import (
    Mode,
    Routine,
    RoutineParameter,
    chosen,
    split_name,
)


def routine(*parameters: RoutineParameter, returns: str | None = None) -> Routine:
    return Routine("s.f", parameters, returns)


def taking(*names: str, optional: tuple[str, ...] = (), type_name: str = "integer") -> Routine:
    return routine(*(RoutineParameter(one, Mode.IN, type_name, one in optional) for one in names))


@pytest.mark.parametrize(
    ("written", "parts"),
    [
        ("f", (None, "f", None)),
        (" s.f ", ("s", "f", None)),
        ("s.f()", ("s", "f", ())),
        ("f(Integer,  numeric(10, 2), double  precision)", None),
        ("a.b.f(text)", ("a.b", "f", ("text",))),
    ],
)
def test_names(written: str, parts: tuple[object, ...] | None) -> None:
    expected = parts or (None, "f", ("integer", "numeric(10, 2)", "double precision"))
    assert split_name(written) == expected


@pytest.mark.parametrize("written", ["", "f(", "f)", "f(a) b", "(a)"])
def test_no_names(written: str) -> None:
    with pytest.raises(WorkFailed, match="is not a name of a routine") as failed:
        split_name(written)
    assert failed.value.permanent


def test_arguments_choose() -> None:
    one, two, with_default = taking("a"), taking("a", "b"), taking("a", "c", optional=("c",))
    assert chosen("f", [one, two, with_default], {"a": 1, "b": 1}, None) is two
    assert chosen("f", [one, two, with_default], {"a": 1, "c": 1}, None) is with_default
    assert chosen("f", [one, two, with_default], {"a": 1}, None) is one  # leaves nothing out
    assert chosen("f", [with_default], {"a": 1}, None) is with_default


def test_types_choose() -> None:
    texts, integers = taking("a", type_name="text"), taking("a")
    assert chosen("f", [texts, integers], {"a": 1}, ("text",)) is texts
    with pytest.raises(WorkFailed, match="several routines 'f' take these") as failed:
        chosen("f", [texts, integers], {"a": 1}, None)
    assert "procedure s.f(a text)\n  procedure s.f(a integer)" in str(failed.value)


def test_what_goes_out_is_no_argument() -> None:
    out = routine(
        RoutineParameter("", Mode.IN, "date"),
        RoutineParameter("t", Mode.OUT, "text"),
        returns="text",
    )
    assert chosen("f", [out], {"1": "2026-01-01"}, ("date",)) is out
    assert str(out) == "function s.f(date, OUT t text) returns text"
    with pytest.raises(WorkFailed, match="it has no t; it needs 1"):
        chosen("f", [out], {"t": "x"}, None)


def test_nothing_fits() -> None:
    with pytest.raises(WorkFailed, match="there is no procedure or function 'f'"):
        chosen("f", [], {}, None)
    with pytest.raises(WorkFailed, match=r"no routine 'f' takes these arguments \(none\)"):
        chosen("f", [taking("a"), taking("b")], {}, None)
    with pytest.raises(WorkFailed, match="its types are others"):
        chosen("f", [taking("a")], {"a": 1}, ("text",))

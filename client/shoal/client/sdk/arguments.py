"""Arguments of the SDK: their types, checked where the author wrote them, and as YAML has them.

Type hints help authors who run a type checker. All others would get an internal error later, when
the definition is read. So the functions of the SDK check their arguments by the same hints: an
AuthoringError names the argument, what it takes and what it was given.
"""

import datetime as dt
import functools
import inspect
import reprlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from types import NoneType, UnionType
from typing import (
    Any,
    Literal,
    ParamSpec,
    TypeAlias,
    TypeVar,
    Union,
    Unpack,
    get_args,
    get_origin,
    get_type_hints,
)

from shoal.client.errors import AuthoringError

Scalar: TypeAlias = str | int | float | bool | dt.date
Duration: TypeAlias = str | int | float | dt.timedelta  # "90s", seconds, or a timedelta

P = ParamSpec("P")
R = TypeVar("R")

_WORDS: Mapping[Any, str] = {
    str: "text",
    bool: "True or False",
    int: "a whole number",
    float: "a number",
    dt.date: "a date",
    dt.datetime: "a moment",
    dt.timedelta: "a timedelta",
    NoneType: "None",
}


def typed(function: Callable[P, R]) -> Callable[P, R]:
    """Check the arguments of each call. Raises AuthoringError, also if one is missing."""
    signature = inspect.signature(function)
    called = function.__qualname__.removesuffix(".__init__")

    @functools.wraps(function)
    def checked(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            bound = signature.bind(*args, **kwargs)
        except TypeError as error:
            raise AuthoringError(f"{called}: {error}") from None
        hints = hints_of(function)
        for name, value in bound.arguments.items():
            hint = hints.get(name, Any)
            match signature.parameters[name].kind:
                case inspect.Parameter.VAR_KEYWORD:
                    _check_options(called, value, hint)
                case inspect.Parameter.VAR_POSITIONAL:
                    for one in value:
                        check(called, name, one, hint)
                case _:
                    check(called, name, value, hint)
        return function(*args, **kwargs)

    return checked


def check_fields(made: object) -> None:
    """Check the fields of a dataclass that has just been made. Raises AuthoringError."""
    of: Any = type(made)
    for name, hint in hints_of(of).items():
        check(of.__name__, name, getattr(made, name), hint)


def check(called: str, name: str, value: Any, hint: Any) -> None:
    """Raises AuthoringError if the value is not what the hint says."""
    try:
        wrong = next(_mismatches(value, hint, name), None)
    except RecursionError:
        raise AuthoringError(f"{called}: {name} holds itself, or is far too deep") from None
    if wrong is None:
        return
    where, found, wanted = wrong
    shown = " ".join(reprlib.repr(found).split())
    article = "an" if type(found).__name__[0] in "aeiou" else "a"
    raise AuthoringError(
        f"{called}: {where} takes {_words(wanted)}, not {shown}, "
        f"which is {article} {type(found).__name__}"
    )


def _check_options(called: str, values: Mapping[str, Any], hint: Any) -> None:
    if get_origin(hint) is not Unpack:
        return
    known = hints_of(get_args(hint)[0])
    for name, value in values.items():
        # None is what was left out; what the definition makes of it is checked there.
        if name in known and value is not None:
            check(called, name, value, known[name])


@functools.cache
def hints_of(of: Any) -> Mapping[str, Any]:
    """Return what the arguments of a function, or the fields of a class, take, by name."""
    return get_type_hints(of)


def _mismatches(value: Any, hint: Any, where: str) -> Iterator[tuple[str, Any, Any]]:
    """Yield where something is wrong, what is there, and what should be: the innermost of each."""
    if get_origin(hint) in (Union, UnionType):
        choices = [choice for choice in get_args(hint) if not _is_wrong(value, choice)]
        for choice in choices:
            if not any(_mismatches(value, choice, where)):
                return
        # The right kind of container with something wrong in it: that is reported.
        if choices:
            yield from _mismatches(value, choices[0], where)
        else:
            yield where, value, hint
    elif _is_wrong(value, hint):
        yield where, value, hint
    elif get_origin(hint) is not None and isinstance(value, Mapping):
        name, item = (*get_args(hint), Any, Any)[:2]
        for key, one in value.items():
            yield from _mismatches(key, name, f"a key of {where}")
            yield from _mismatches(one, item, f"{where}[{reprlib.repr(key)}]")
    elif (get_origin(hint) or hint) is Sequence and isinstance(value, Collection):
        for number, one in enumerate(value):
            yield from _mismatches(one, get_args(hint)[0], f"{where}[{number}]")


def _is_wrong(value: Any, hint: Any) -> bool:
    """Say whether the value itself, not what is in it, is of another type."""
    origin = get_origin(hint) or hint
    if origin is Any or isinstance(origin, TypeVar):
        return False
    if origin is Literal:
        return not isinstance(value, str)  # the definition's check says whether it is a known word
    if origin is Sequence:  # whatever can be gone through will do
        return isinstance(value, str | bytes | Mapping) or not isinstance(value, Iterable)
    if origin is Callable or origin is type(Callable) or not isinstance(origin, type):
        return not callable(value)
    if origin in (int, float) and isinstance(value, bool):
        return True
    return not isinstance(value, (int, float) if origin is float else origin)


def _words(hint: Any) -> str:
    arguments = get_args(hint)
    match get_origin(hint) or hint:
        case origin if origin in (Union, UnionType):
            words = [_words(one) for one in arguments if one is not NoneType]
            return " or ".join(dict.fromkeys(words))
        case origin if origin is Literal:
            return f"one of {', '.join(map(str, arguments))}"
        case origin if origin is Sequence:
            return f"a list, each of {_words(arguments[0])}" if arguments else "a list"
        case origin if origin is Mapping:
            return "a mapping from names to values" if arguments else "a mapping"
        case origin if isinstance(origin, type):
            return _WORDS.get(origin, f"a {origin.__name__}(…)")
    return "a function"


def plain(value: Any) -> Any:
    """Return the value as YAML and JSON have it. Raises AuthoringError for what they have not."""
    try:
        return _plain(value)
    except RecursionError:
        raise AuthoringError("a value holds itself, or is far too deep") from None


def _plain(value: Any) -> Any:
    match value:
        case dt.timedelta():
            return value.total_seconds()
        case dt.date():
            return value.isoformat()
        case Mapping():
            return {str(key): _plain(item) for key, item in value.items()}
        case list() | tuple():
            return [_plain(item) for item in value]
        case None | str() | bool() | int() | float():
            return value
        case _ if hasattr(value, "__fspath__"):
            return value.__fspath__()
    shown = " ".join(reprlib.repr(value).split())
    raise AuthoringError(
        f"{shown} is not text, a number, a truth value, a date, a list or a mapping"
    )

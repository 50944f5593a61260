"""Templates that users write for messages: Liquid, which reads what it is given and nothing else.

A template cannot call Python, open files or loop for long: what it may cost is limited. Liquid
limits loops, assignments and what comes out, but not what a filter makes. So filters whose results
can be far longer than what they are given, or whose patterns take long, are not there, and the
others have a limit.
"""

from collections.abc import Callable, Mapping
from functools import cached_property, wraps
from typing import TYPE_CHECKING, Any

from shoal.core.errors import ShoalError

if TYPE_CHECKING:
    from liquid import Environment

LOOPS = 10_000  # iterations of all loops together
LONGEST = 100_000  # characters of what comes out, and of what a filter takes or makes

_FILTERS = frozenset(
    {
        *("abs", "at_least", "at_most", "ceil", "divided_by", "floor", "minus", "modulo", "plus"),
        *("round", "sum", "times"),
        *("append", "capitalize", "downcase", "escape", "lstrip", "prepend", "remove", "rstrip"),
        *("slice", "strip", "strip_newlines", "truncate", "truncatewords", "upcase", "url_encode"),
        *("compact", "first", "join", "last", "map", "reverse", "size", "sort", "split", "uniq"),
        *("date", "default", "where"),
    }
)


class TemplateError(ShoalError):
    """A template cannot be read, or asks for what is not there or too much."""


class Templates:
    """Renders templates. ``liquid`` is imported by the first."""

    @cached_property
    def _environment(self) -> "Environment":
        from liquid import DictLoader, Environment, StrictDefaultUndefined

        class Limited(Environment):
            loop_iteration_limit = LOOPS
            output_stream_limit = LONGEST
            local_namespace_limit = LONGEST

        # Without a file to load: ``include`` and ``render`` find nothing.
        made = Limited(loader=DictLoader({}), undefined=StrictDefaultUndefined)
        made.filters = {name: _bounded(made.filters[name]) for name in _FILTERS}
        return made

    def check(self, template: str) -> None:
        """Return if a template can be read. Raises TemplateError."""
        self._parsed(template)

    def render(self, template: str, facts: Mapping[str, Any]) -> str:
        """Return what a template makes of ``facts``, JSON values. Raises TemplateError."""
        from liquid.exceptions import LiquidError

        try:
            return str(self._parsed(template).render(**facts))
        except LiquidError as error:
            raise TemplateError(_said(error)) from None
        except (ArithmeticError, LookupError, TypeError, ValueError, RecursionError) as error:
            # What filters do with values of a kind that they were not made for.
            raise TemplateError(f"{type(error).__name__}: {error}") from None

    def _parsed(self, template: str) -> Any:
        from liquid.exceptions import LiquidError

        try:
            return self._environment.from_string(template)
        except LiquidError as error:
            raise TemplateError(_said(error)) from None


def _bounded(work: Callable[..., Any]) -> Callable[..., Any]:
    """Return a filter that takes and makes no more than ``LONGEST`` characters."""
    name = work.__name__

    @wraps(work)
    def bounded(*values: Any, **options: Any) -> Any:
        length = sum(_length(one) for one in values)
        if work.__name__ == "join" and isinstance(values[0], list | tuple) and len(values) > 1:
            length += len(values[0]) * _length(values[1])
        if length > LONGEST:
            raise TemplateError(f"{name}: more than {LONGEST:,} characters")
        made = work(*values, **options)
        if _length(made) > LONGEST:
            raise TemplateError(f"{name}: more than {LONGEST:,} characters")
        return made

    return bounded


def _length(value: Any) -> int:
    """Return how many characters a value is, or has within it at the first level."""
    if isinstance(value, str):
        return len(value)
    if isinstance(value, list | tuple):
        return sum(len(one) if isinstance(one, str) else 1 for one in value)
    if isinstance(value, int):
        return value.bit_length() // 3
    return 0


def _said(error: Exception) -> str:
    if type(error).__name__ == "TemplateNotFoundError":
        return "a template includes no others"
    return str(error).strip().splitlines()[0][:500] if str(error).strip() else type(error).__name__


TEMPLATES = Templates()

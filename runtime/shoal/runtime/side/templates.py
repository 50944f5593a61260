"""Templates that users write for messages: Liquid, which reads what it is given and nothing else.

A template cannot call Python, open files or loop for long: what it may cost is limited. Liquid
limits loops, assignments and what comes out, but not what a filter makes. So filters whose results
can be far longer than what they are given, or whose patterns take long, are not there. The others
have a limit each, and a budget for all their input and output together (``WORK``).

Liquid itself takes long to read some templates, in C code that no budget reaches. So services use
``Templates``, which works in side processes.
"""

from collections.abc import Callable, Mapping, Sized
from contextvars import ContextVar
from functools import cached_property, wraps
from typing import TYPE_CHECKING, Any, TypeVar

from shoal.core.errors import ShoalError
from shoal.core.untrusted import Budget, OverBudget
from shoal.runtime.side.process import SideProcesses, WorkTooLarge

if TYPE_CHECKING:
    from liquid import Environment

T = TypeVar("T")
LOOPS = 10_000  # iterations of all loops together
LONGEST = 100_000  # characters of what comes out, and of what a filter takes or makes
WORK = 3_000_000  # characters that all filters of a template take and make
_CALLS = 30_000  # of filters

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
    """Checks and renders templates in side processes.

    ``owner``: the project that has the template. One template of each is under way at a time.
    """

    def __init__(self, processes: SideProcesses) -> None:
        self._processes = processes

    async def check(self, owner: str, template: str) -> None:
        """Return if a template can be read. Raises TemplateError, NoTurn."""
        await self._run(owner, check, template)

    async def render(self, owner: str, template: str, facts: Mapping[str, Any]) -> str:
        """Return what a template makes of ``facts``, JSON values. Raises TemplateError, NoTurn."""
        return await self._run(owner, render, template, dict(facts))

    async def _run(self, owner: str, work: Callable[..., T], *arguments: Any) -> T:
        try:
            return await self._processes.run(owner, work, *arguments)
        except WorkTooLarge as error:
            raise TemplateError(f"the template takes too much: {error}") from None


def check(template: str) -> None:
    """Return if a template can be read. Raises TemplateError. In a side process."""
    _ENGINE.parse(template)


def render(template: str, facts: Mapping[str, Any]) -> str:
    """Return what a template makes of ``facts``. Raises TemplateError. In a side process."""
    return _ENGINE.render(template, facts)


class _Engine:
    """Liquid with limits. It is imported when the first template is read."""

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

    def render(self, template: str, facts: Mapping[str, Any]) -> str:
        """Return what a template makes of ``facts``, JSON values. Raises TemplateError."""
        from liquid.exceptions import LiquidError

        parsed = self.parse(template)
        before = _WORK.set(Budget(_CALLS, WORK))
        try:
            return str(parsed.render(**facts))
        except LiquidError as error:
            raise TemplateError(_said(error)) from None
        except (ArithmeticError, LookupError, TypeError, ValueError, RecursionError) as error:
            # What filters do with values of a kind that they were not made for.
            raise TemplateError(f"{type(error).__name__}: {error}") from None
        finally:
            _WORK.reset(before)

    def parse(self, template: str) -> Any:
        """Return a template as Liquid has read it. Raises TemplateError."""
        from liquid.exceptions import LiquidError

        try:
            return self._environment.from_string(template)
        except LiquidError as error:
            raise TemplateError(_said(error)) from None


_WORK: ContextVar[Budget] = ContextVar("work of the filters of a template")


def _bounded(work: Callable[..., Any]) -> Callable[..., Any]:
    """Return a filter that takes and makes no more than ``LONGEST`` characters, within WORK."""
    name = work.__name__

    @wraps(work)
    def bounded(*values: Any, **options: Any) -> Any:
        length = sum(_length(one) for one in values)
        if work.__name__ == "join" and isinstance(values[0], list | tuple) and len(values) > 1:
            length += len(values[0]) * _length(values[1])
        if length > LONGEST:
            raise TemplateError(f"{name}: more than {LONGEST:,} characters")
        _spend(length)
        made = work(*values, **options)
        made_length = _length(made)
        if made_length > LONGEST:
            raise TemplateError(f"{name}: more than {LONGEST:,} characters")
        _spend(made_length)
        return made

    return bounded


def _spend(characters: int) -> None:
    try:
        _WORK.get().spend(1, characters)
    except OverBudget:
        raise TemplateError(
            f"the filters take and make more than {WORK:,} characters together; use fewer of them"
        ) from None


def _length(value: Any) -> int:
    """Return how many characters a value is, or has within it at the first level."""
    if isinstance(value, str):
        return len(value)
    if isinstance(value, list | tuple):
        return sum(len(one) if isinstance(one, str) else 1 for one in value)
    if isinstance(value, int):
        return value.bit_length() // 3
    if isinstance(value, range):  # (1..99999999), which nothing has counted yet
        return max(0, value.stop - value.start)
    return len(value) if isinstance(value, Sized) else 0


def _said(error: Exception) -> str:
    if type(error).__name__ == "TemplateNotFoundError":
        return "a template includes no others"
    return str(error).strip().splitlines()[0][:500] if str(error).strip() else type(error).__name__


_ENGINE = _Engine()

"""Templates that users write for messages: Liquid, which reads what it is given and nothing else.

A template cannot call Python, open files or loop for long: what it may cost is limited.
"""

from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

from shoal.core.errors import ShoalError

if TYPE_CHECKING:
    from liquid import Environment

LOOPS = 10_000  # iterations of all loops together
LONGEST = 100_000  # characters of what comes out


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
        return Limited(loader=DictLoader({}), undefined=StrictDefaultUndefined)

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


def _said(error: Exception) -> str:
    if type(error).__name__ == "TemplateNotFoundError":
        return "a template includes no others"
    return str(error).strip().splitlines()[0][:500] if str(error).strip() else type(error).__name__


TEMPLATES = Templates()

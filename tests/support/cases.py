"""Thousands of small cases in one test: pytest takes milliseconds for each test of its own."""

import functools
import inspect
import itertools
from collections.abc import Awaitable, Callable, Iterable
from typing import Any


def each(**values: Iterable[Any]) -> Callable[[Callable[..., None]], Callable[[], None]]:
    """Call a test with every combination of the values of its arguments; a failure names its case.

    For functions without fixtures. Cases after the first that fails are not tried.
    """

    def decorate(test: Callable[..., None]) -> Callable[[], None]:
        @functools.wraps(test)
        def run() -> None:
            tried = 0
            for case in itertools.product(*(list(one) for one in values.values())):
                arguments = dict(zip(values, case, strict=True))
                try:
                    test(**arguments)
                except BaseException as error:
                    error.add_note(f"case: {arguments}")
                    raise
                tried += 1
            assert tried, "no cases"

        del run.__wrapped__  # pytest would ask for its arguments
        return run

    return decorate


def each_row(
    names: str, rows: Iterable[Any]
) -> Callable[[Callable[..., Awaitable[None]]], Callable[..., Awaitable[None]]]:
    """Call a test that takes fixtures with one row of values after the other.

    For cases that do not change what the next one finds. A failure names its row; rows after it are
    not tried. ``names``: the arguments that a row has, for example ``"body, field"``.
    """
    wanted = names.split(", ")
    cases = [dict(zip(wanted, row if len(wanted) > 1 else (row,), strict=True)) for row in rows]
    assert cases, "no cases"

    def decorate(test: Callable[..., Awaitable[None]]) -> Callable[..., Awaitable[None]]:
        signature = inspect.signature(test)

        @functools.wraps(test)
        async def run(**fixtures: Any) -> None:
            for case in cases:
                try:
                    await test(**fixtures, **case)
                except BaseException as error:
                    error.add_note(f"case: {case}")
                    raise

        others = [one for name, one in signature.parameters.items() if name not in wanted]
        setattr(run, "__signature__", signature.replace(parameters=others))  # noqa: B010
        return run

    return decorate

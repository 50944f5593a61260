"""Thousands of small cases in one test: pytest takes milliseconds for each test of its own."""

import functools
import itertools
from collections.abc import Callable, Iterable
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

"""What the parts of a master hear from each other."""

from typing import cast

from shoal.core.runs.run import Run
from shoal.master.engine.listeners import Listener, Listeners


class Noting(Listener):
    def __init__(self) -> None:
        self.heard: list[object] = []

    def on_ended(self, run: Run) -> None:
        self.heard.append(run)

    def notify(self, partition: int) -> None:
        self.heard.append(partition)


async def test_all_that_are_registered_hear_what_they_override_and_nothing_else() -> None:
    listeners, first, second, deaf = Listeners(), Noting(), Noting(), Listener()
    listeners.register(first, deaf)
    listeners.notify(1)
    listeners.register(second)
    listeners.notify(2)
    run = cast("Run", object())
    listeners.on_ended(run)
    listeners.on_dropped(7)
    listeners.on_queue_failure()
    assert first.heard == [1, 2, run]
    assert second.heard == [2, run]


def test_every_method_of_a_listener_is_passed_on() -> None:
    methods = {name for name in vars(Listener) if not name.startswith("_")}
    passed_on = {name for name in vars(Listeners) if not name.startswith("_")}
    assert methods - passed_on == {"on_ending"}  # whose results are collected: endings

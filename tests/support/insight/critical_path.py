"""The critical path of one run, and what its tasks would gain: slowly, by playing the run."""

_CLOCKS_US = 2_000_000


def path_of(
    upstream: dict[str, list[str]], times: dict[str, tuple[int, int]]
) -> list[tuple[str, int, int, int]]:
    """Return the links: task, wait, own time, gain; in microseconds since the run began.

    ``times``: start and end of the tasks that ran. The path is found by plain recursion, each gain
    by playing the run once more without the time of the task.
    """

    def last(names: list[str]) -> str | None:
        return max(names, key=lambda one: (times[one][1], one), default=None)

    def waited(name: str) -> list[str]:
        """Return what a task waited for: for each task before it, it or what is behind it."""
        found = [one if one in times else last(waited(one)) for one in upstream[name]]
        return [
            one
            for one in found
            if one is not None
            and (name not in times or times[one][1] <= times[name][0] + _CLOCKS_US)
        ]

    base = {name: max([0, *(times[one][1] for one in waited(name))]) for name in times}

    def end(without: str | None) -> int:
        """Play the run, without the time of a task."""
        ends: dict[str, int] = {}

        def of(name: str) -> int:
            if name not in ends:
                begun = max([0, *map(of, steps(name))])
                if name in times:
                    begun += times[name][0] - base[name]
                    begun += 0 if name == without else times[name][1] - times[name][0]
                ends[name] = begun
            return ends[name]

        def steps(name: str) -> list[str]:
            """Return the tasks before one, without those that it did not wait for."""
            if name not in times:
                return upstream[name]
            return [one for one in upstream[name] if _over(one) <= times[name][0] + _CLOCKS_US]

        return max([0, *map(of, times)])

    def _over(name: str) -> int:
        if name in times:
            return times[name][1]
        return max([0, *map(_over, waited(name))])

    path: list[str] = []
    at = last(list(times))
    while at is not None:
        path.insert(0, at)
        at = last(waited(at))
    return [
        (
            name,
            times[name][0] - base[name],
            times[name][1] - times[name][0],
            end(None) - end(name),
        )
        for name in path
    ]

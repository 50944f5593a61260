"""Control groups of attempts."""

from functools import cache

from shoal.worker.home.cgroups import Hierarchy
from tests.mutations.mutation import Mutation, Promise, mutation

_CGROUPS = "worker/shoal/worker/supervisor/cgroups.py"
_PLACES = "worker/shoal/worker/home/cgroups.py"
_REAPER = "worker/shoal/worker/supervisor/reaper.py"
_TESTS = "tests/integration/worker"
_UNIT = "tests/unit/worker/test_groups.py"
_GUEST = f"{_TESTS}/test_groups.py::test_attempt_is_not_over_while_something_is_in_its_group"


@cache
def _can_make_groups() -> bool:
    return Hierarchy.read().usable("shoal-mutations") is not None


MUTATIONS: tuple[Mutation, ...] = (
    mutation(
        "programs are not in the group of their attempt",
        Promise.KILLED_MEANS_DEAD,
        "worker/shoal/worker/supervisor/shim/shim.py",
        ("        cgroup.join()\n", ""),
        (f"{_TESTS}/test_groups.py::test_program_is_in_its_group_from_its_first_moment",),
        possible=_can_make_groups,
    ),
    mutation(
        "groups are not killed",
        Promise.KILLED_MEANS_DEAD,
        _CGROUPS,
        ('done = self._write("cgroup.kill", b"1")', "done = False"),
        (_GUEST,),
        possible=_can_make_groups,
    ),
    mutation(
        "an attempt is over while something is in its group",
        Promise.KILLED_MEANS_DEAD,
        _REAPER,
        (" and not self._is_full(a.cgroup)", ""),
        (_GUEST,),
        possible=_can_make_groups,
    ),
    mutation(
        "a shim gets the group of one before it",
        Promise.KILLED_MEANS_DEAD,
        "worker/shoal/worker/supervisor/shims.py",
        ("{launcher_pid}-{next(self._started_before)}", "{launcher_pid}-{number}"),
        (f"{_TESTS}/test_groups.py::test_group_goes_with_its_shim_and_the_next_shim_has_another",),
        possible=_can_make_groups,
    ),
    mutation(
        "a restarted worker leaves alone what is in the groups of its former life",
        Promise.ONE_LIVE_ATTEMPT,
        "worker/shoal/worker/home/home.py",
        ("if not hierarchy.kill_former(name, PREDECESSOR_S):", "if False:"),
        (
            f"{_TESTS}/test_agent_restarts.py::"
            "test_what_outlived_all_its_watchers_dies_when_the_worker_starts_again[auto-env -i]",
        ),
        possible=_can_make_groups,
    ),
    mutation(
        "workers of one machine share a group",
        Promise.KILLED_MEANS_DEAD,
        _PLACES,
        ('return f"shoal-{status.st_dev:x}-{status.st_ino:x}"', 'return "shoal"'),
        (f"{_UNIT}::test_name_is_that_of_the_locked_file",),
    ),
    mutation(
        "a worker kills the group that it is in itself",
        Promise.KILLED_MEANS_DEAD,
        _PLACES,
        ('if name in (self._own or "").split("/"):', "if False:"),
        (f"{_UNIT}::test_worker_that_its_own_former_attempt_has_started_leaves_its_groups_alone",),
    ),
    mutation(
        "a group hides the limits above it from programs",
        Promise.PROGRESS,
        _PLACES,
        (" or _has_limits(own)", ""),
        (
            f"{_UNIT}::"
            "test_group_with_limits_gets_none_below_in_which_programs_would_not_see_them[memory]",
        ),
    ),
)

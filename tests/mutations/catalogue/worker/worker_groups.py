"""Control groups of attempts."""

from functools import cache

from shoal.worker.home.cgroups import Hierarchy
from tests.mutations.mutation import Mutation, Promise
from tests.mutations.place import Place

_SHIM = Place("shoal.worker.supervisor.shim.shim")
_CGROUPS = Place("shoal.worker.supervisor.cgroups")
_REAPER = Place("shoal.worker.supervisor.reaper")
_SHIMS = Place("shoal.worker.supervisor.shims")
_HOME = Place("shoal.worker.home.home")
_PLACES = Place("shoal.worker.home.cgroups")
_TESTS = "tests/integration/worker"
_GUEST = (
    f"{_TESTS}/supervisor/test_groups.py::test_attempt_is_not_over_while_something_is_in_its_group"
)
_UNIT = "tests/unit/worker/execution/test_groups.py"
_TEST_GROUPS = f"{_TESTS}/supervisor/test_groups.py"


@cache
def _can_make_groups() -> bool:
    return Hierarchy.read().usable("shoal-mutations") is not None


MUTATIONS: tuple[Mutation, ...] = (
    Promise.KILLED_MEANS_DEAD.broken_if(
        "programs are not in the group of their attempt",
        _SHIM["be_shim"].drop("cgroup.join()"),
        f"{_TEST_GROUPS}::test_program_is_in_its_group_from_its_first_moment",
        possible=_can_make_groups,
    ),
    Promise.KILLED_MEANS_DEAD.broken_if(
        "groups are not killed",
        _CGROUPS["kill"].never("self._write('cgroup.kill', b'1')"),
        _GUEST,
        possible=_can_make_groups,
    ),
    Promise.KILLED_MEANS_DEAD.broken_if(
        "an attempt is over while something is in its group",
        _REAPER["_clear_attempts"].drop("not self._is_full(a.cgroup)"),
        _GUEST,
        possible=_can_make_groups,
    ),
    Promise.KILLED_MEANS_DEAD.broken_if(
        "a shim gets the group of one before it",
        _SHIMS["start"].replace("next(self._started_before)", "number"),
        f"{_TEST_GROUPS}::test_group_goes_with_its_shim_and_the_next_shim_has_another",
        possible=_can_make_groups,
    ),
    Promise.ONE_LIVE_ATTEMPT.broken_if(
        "a restarted worker leaves alone what is in the groups of its former life",
        _HOME["_kill_former_groups"].never("not hierarchy.kill_former(name, PREDECESSOR_S)"),
        f"{_TESTS}/faults/test_restarts.py::"
        "test_what_outlived_all_its_watchers_dies_when_the_worker_starts_again[auto-env -i]",
        possible=_can_make_groups,
    ),
    Promise.KILLED_MEANS_DEAD.broken_if(
        "workers of one machine share a group",
        _PLACES["group_name"].replace("f'shoal-{status.st_dev:x}-{status.st_ino:x}'", "'shoal'"),
        f"{_UNIT}::test_name_is_that_of_the_locked_file",
    ),
    Promise.KILLED_MEANS_DEAD.broken_if(
        "a worker kills the group that it is in itself",
        _PLACES["kill_former"].never("name in (self._own or '').split('/')"),
        f"{_UNIT}::test_worker_that_its_own_former_attempt_has_started_leaves_its_groups_alone",
    ),
    Promise.PROGRESS.broken_if(
        "a group hides the limits above it from programs",
        _PLACES["usable"].drop("_has_limits(own)"),
        f"{_UNIT}::"
        "test_group_with_limits_gets_none_below_in_which_programs_would_not_see_them[memory]",
    ),
)

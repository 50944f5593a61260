"""Retention: who deletes, and what stays."""

from tests.mutations.mutation import Mutation, Promise, mutation

_EXPIRED = "sql/shoal/sql/repositories/upkeep/expired.py"
_PURGING = "master/shoal/master/services/upkeep/purging.py"
_TRIGGER = "core/shoal/core/timing/cron/trigger.py"
_KEEPING = "worker/shoal/worker/logs/keeping.py"
_TESTS = "tests/integration/master/test_purging.py"
_DUE_TESTS = "tests/unit/core/test_cron_due.py"
_SQL_TESTS = "tests/integration/sql/test_expired.py"
_LOG_TESTS = "tests/integration/worker/test_log_keeping.py"

MUTATIONS: tuple[Mutation, ...] = (
    mutation(
        "a former owner purges",
        Promise.FENCED_OWNERSHIP,
        _PURGING,
        ("        await uow.fence(epochs)\n", ""),
        (f"{_TESTS}::test_former_owner_deletes_nothing[sqlite]",),
    ),
    mutation(
        "a former owner asks for a purge",
        Promise.FENCED_OWNERSHIP,
        _PURGING,
        ("            await uow.fence({HOME: epoch})\n", ""),
        (f"{_TESTS}::test_next_owner_neither_repeats_a_purge_nor_forgets_one[sqlite]",),
    ),
    mutation(
        "a clock that was ahead stops the purges",
        Promise.PROGRESS,
        _TRIGGER,
        ("    if previous is None or now < previous:\n", "    if previous is None:\n"),
        (f"{_DUE_TESTS}::test_clock_that_was_ahead_for_a_while_stops_no_night",),
    ),
    mutation(
        "a clock that jumps to and fro has masters purge all the time",
        Promise.PROGRESS,
        _PURGING,
        (
            "self._due_s = time.monotonic() + self._interval_s  # however the clock jumps",
            "pass",
        ),
        (f"{_TESTS}::test_clock_that_jumps_to_and_fro_has_nobody_purge_all_the_time[sqlite]",),
    ),
    mutation(
        "an instance is deleted without a second look",
        Promise.NOTHING_LOST,
        _EXPIRED,
        (
            'may_go, values = _INSTANCE_MAY_GO, {"before": before, "ids": sorted(ids)}',
            'may_go, values = _i.created_at < bindparam("before"), {"before": before, "ids": ids}',
        ),
        (f"{_SQL_TESTS}::test_only_what_is_finished_goes[sqlite-RUNNING]",),
    ),
    mutation(
        "an instance is deleted although somebody is changing it",
        Promise.NOTHING_LOST,
        _EXPIRED,
        (
            "            .order_by(_i.id)\n"
            "            .with_for_update(of=workflow_instance, skip_locked=True)\n",
            "            .order_by(_i.id)\n",
        ),
        (f"{_SQL_TESTS}::test_a_recovery_under_way_is_not_deleted_under_its_feet[postgresql]",),
    ),
    mutation(
        "what is asked of an instance does not keep it",
        Promise.NOTHING_LOST,
        _EXPIRED,
        ("    ~_is_asked_for,\n", ""),
        (f"{_SQL_TESTS}::test_what_a_pending_command_is_about_stays[sqlite]",),
    ),
    mutation(
        "a parent goes before its children have ended",
        Promise.PROGRESS,
        _EXPIRED,
        ("    ~_has_open_child,\n", ""),
        (
            f"{_SQL_TESTS}::"
            "test_parents_go_before_their_children_and_not_before_those_have_ended[sqlite]",
        ),
    ),
    mutation(
        "a child that is open keeps everything",
        Promise.PROGRESS,
        _EXPIRED,
        ("            .correlate(workflow_instance)\n        ),\n", "        ),\n"),
        (f"{_SQL_TESTS}::test_open_child_keeps_its_own_parent_and_nothing_else[sqlite]",),
    ),
    mutation(
        "children go before their parent",
        Promise.PROGRESS,
        _EXPIRED,
        (
            "_INSTANCE_MAY_GO = and_(_is_old, ~_has_parent, ~_has_backfill)",
            "_INSTANCE_MAY_GO = and_(_is_old, ~_has_backfill)",
        ),
        (
            f"{_SQL_TESTS}::"
            "test_parents_go_before_their_children_and_not_before_those_have_ended[sqlite]",
        ),
    ),
    mutation(
        "instances go before their backfill",
        Promise.PROGRESS,
        _EXPIRED,
        (
            "_INSTANCE_MAY_GO = and_(_is_old, ~_has_parent, ~_has_backfill)",
            "_INSTANCE_MAY_GO = and_(_is_old, ~_has_parent)",
        ),
        (f"{_SQL_TESTS}::test_backfill_goes_when_it_is_over_and_its_instances_after_it[sqlite]",),
    ),
    mutation(
        "a backfill goes while its instances run",
        Promise.PROGRESS,
        _EXPIRED,
        (
            '_b.finished_at < bindparam("before"), ~_has_open_run)',
            '_b.finished_at < bindparam("before"))',
        ),
        (f"{_SQL_TESTS}::test_backfill_goes_when_it_is_over_and_its_instances_after_it[sqlite]",),
    ),
    mutation(
        "an idempotency key is forgotten before what it has made",
        Promise.ONE_INSTANCE,
        _EXPIRED,
        (
            "    ~select(_i.id).where(_i.id == _c.instance_id).exists(),\n"
            "    ~select(_i.id).where(_i.command_id == _c.id).exists(),\n",
            "",
        ),
        (f"{_SQL_TESTS}::test_key_is_known_as_long_as_what_it_has_made[sqlite]",),
    ),
    mutation(
        "a pending command is purged",
        Promise.NOTHING_LOST,
        _EXPIRED,
        (
            '_COMMAND_MAY_GO = and_(\n    ~IS_PENDING,\n    _c.handled_at < bindparam("before"),\n',
            '_COMMAND_MAY_GO = and_(\n    _c.created_at < bindparam("before"),\n',
        ),
        (f"{_SQL_TESTS}::test_key_is_known_as_long_as_what_it_has_made[sqlite]",),
    ),
    mutation(
        "the newest instances go as well",
        Promise.NOTHING_LOST,
        _PURGING,
        ("if one.id not in job.kept[one.workflow_id]]", "if one.id]"),
        (f"{_TESTS}::test_newest_instances_stay[sqlite]",),
    ),
    mutation(
        "runs that somebody waits for go as well",
        Promise.PROGRESS,
        _EXPIRED,
        ("            and one.logical_time >= earliest - kept_for\n", "            and False\n"),
        (f"{_SQL_TESTS}::test_runs_that_waiting_tasks_may_look_for_stay[sqlite]",),
    ),
    mutation(
        "logs of what still runs are deleted",
        Promise.NOTHING_LOST,
        _KEEPING,
        ("        if _id(one) in standing.open:\n            return False\n", ""),
        (f"{_LOG_TESTS}::test_logs_of_an_instance_that_runs_stay_however_old_they_are",),
    ),
    mutation(
        "logs of attempts of this worker are deleted",
        Promise.NOTHING_LOST,
        _KEEPING,
        (
            "return all(_id(one) != a.claim.entry.workflow_instance_id for a in self.attempts)",
            "return True",
        ),
        (f"{_LOG_TESTS}::test_logs_of_attempts_here_stay_whatever_a_master_says",),
    ),
    mutation(
        "a log that was begun meanwhile is deleted with the old ones",
        Promise.NOTHING_LOST,
        "worker/shoal/worker/logs/folders.py",
        ("for name in found.names:", "for name in os.listdir(fd):"),
        (f"{_LOG_TESTS}::test_what_was_written_since_the_look_stays",),
    ),
    mutation(
        "a worker's own clock decides how old logs are",
        Promise.NOTHING_LOST,
        _KEEPING,
        ("ahead = max(0.0, now - standing.now)", "ahead = 0.0"),
        (f"{_LOG_TESTS}::test_a_clock_of_our_own_that_is_wrong_deletes_nothing",),
    ),
)

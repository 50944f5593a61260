"""One bad value stops one thing: shared loops isolate their items, and read within bounds."""

from tests.mutations.mutation import Mutation, Promise, mutation

_POISON = "tests/integration/alert/test_poison.py"
_CONDITIONS = "tests/integration/alert/test_conditions.py"
_QUARANTINE = "tests/integration/sql/test_quarantine.py"
_UNTRUSTED = "tests/unit/core/test_untrusted.py"
_LOGICAL_TIME = "tests/unit/core/test_logical_time.py"
_ISOLATION = "sql/shoal/sql/isolation.py"
_READING = "alert/shoal/alert/jobs/reading.py"
_SENDING = "alert/shoal/alert/jobs/sending.py"
_WATCHER = "alert/shoal/alert/watching/watcher.py"
_STOPS_NO_OTHER = (
    f"{_CONDITIONS}::test_workflow_that_cannot_be_looked_at_stops_no_other[postgresql]"
)

MUTATIONS: tuple[Mutation, ...] = (
    mutation(
        "a bad event stops the alerts of all projects",
        Promise.PROGRESS,
        _READING,
        ("await isolate(batch, deal, self._skip)", "await deal(batch)"),
        (f"{_POISON}::test_bad_event_is_quarantined_and_its_neighbours_are_told[sqlite-no name]",),
    ),
    mutation(
        "the neighbours of a bad item are skipped with it",
        Promise.NOTHING_LOST,
        _ISOLATION,
        ("        if len(items) == 1:\n", "        if True:\n"),
        (f"{_QUARANTINE}::test_each_good_item_is_dealt_with_once_and_each_bad_one_skipped",),
    ),
    mutation(
        "a record that is too long stops what it is to keep going",
        Promise.PROGRESS,
        "alert/shoal/alert/jobs/quarantine.py",
        ("workflow[:_LONGEST_NAME]", "workflow"),
        (
            f"{_POISON}::"
            "test_bad_event_is_quarantined_and_its_neighbours_are_told[postgresql-long name]",
        ),
    ),
    mutation(
        "an outage is taken for a bad item",
        Promise.NOTHING_LOST,
        _ISOLATION,
        ("        if is_outage(error):\n            raise\n", ""),
        (f"{_QUARANTINE}::test_outages_are_raised_and_skip_nothing",),
    ),
    mutation(
        "the position does not move past a skipped event",
        Promise.PROGRESS,
        _READING,
        (
            "await uow.alert_jobs.require(READING, self._epoch, event.id)",
            "await uow.alert_jobs.require(READING, self._epoch)",
        ),
        (f"{_POISON}::test_position_moves_past_a_skipped_event_with_its_record[sqlite]",),
    ),
    mutation(
        "a message that cannot be written is not sent at all",
        Promise.NOTHING_LOST,
        _SENDING,
        (
            "            return await self._plain(delivery, mentioned, error)\n",
            "            raise\n",
        ),
        (f"{_POISON}::test_message_that_cannot_be_written_is_sent_as_plain_text[sqlite]",),
    ),
    mutation(
        "messages that cannot be read hold up those behind them",
        Promise.PROGRESS,
        _SENDING,
        (
            "            await self._give_up(int(str(row.key)), None, row)\n",
            "            del row\n",
        ),
        (f"{_POISON}::test_message_that_cannot_be_read_fails_and_holds_up_no_other[sqlite]",),
    ),
    mutation(
        "an alert that cannot be attended to is looked at again and again",
        Promise.PROGRESS,
        "alert/shoal/alert/jobs/attention.py",
        (
            "            await self._put_off(int(str(row.key)), None, row, now)\n",
            "            del row\n",
        ),
        (f"{_POISON}::test_alert_that_cannot_be_attended_to_holds_up_no_other[sqlite]",),
    ),
    mutation(
        "a workflow that cannot be looked at stops the watching of all",
        Promise.PROGRESS,
        _WATCHER,
        ("await isolate(others, look, skip)", "await look(others)"),
        (_STOPS_NO_OTHER,),
    ),
    mutation(
        "conditions of a workflow end because it cannot be looked at",
        Promise.NOTHING_LOST,
        _WATCHER,
        (" and not failed.covers(one)", ""),
        (_STOPS_NO_OTHER,),
    ),
    mutation(
        "a workflow that works again stays quarantined",
        Promise.PROGRESS,
        _WATCHER,
        ("            await uow.quarantine.remove(known - now_known, Consumer.ALERTS)\n", ""),
        (_STOPS_NO_OTHER,),
    ),
    mutation(
        "JSON of too many levels is an error that nobody expects",
        Promise.PROGRESS,
        "core/shoal/core/untrusted.py",
        (
            "    except RecursionError:\n"
            '        raise NotJson(f"it has more than {levels} levels") from None\n',
            "",
        ),
        (f"{_UNTRUSTED}::test_too_deep_too_long_and_broken_texts_are_refused",),
    ),
    mutation(
        "a number of any length is a count",
        Promise.PROGRESS,
        "core/shoal/core/untrusted.py",
        (" or len(digits) > MOST_DIGITS:", ":"),
        (f"{_UNTRUSTED}::test_counts",),
    ),
    mutation(
        "logical times at the ends of the calendar are accepted",
        Promise.PROGRESS,
        "core/shoal/core/timing/logical_time.py",
        ("    if not FIRST <= in_utc <= LAST:\n", "    if False:\n"),
        (f"{_LOGICAL_TIME}::test_times_within_a_day_of_the_ends_are_refused_by_value_and_range",),
    ),
    mutation(
        "a usual time is learnt from the ends of the calendar",
        Promise.PROGRESS,
        "core/shoal/core/alerts/conditions.py",
        (
            "            except OverflowError:  # at the ends",
            "            except KeyError:  # at the ends",
        ),
        (f"{_CONDITIONS}::test_run_at_the_end_of_the_calendar_is_not_learnt_from[sqlite]",),
    ),
    mutation(
        "a message about a run of the year 9999 cannot be written",
        Promise.PROGRESS,
        "core/shoal/core/timing/wallclock.py",
        (
            "        return moment.astimezone(UTC)\n\n\ndef is_aware",
            "        raise\n\n\ndef is_aware",
        ),
        (f"{_POISON}::test_runs_at_the_ends_of_the_calendar_are_told[sqlite-9999]",),
    ),
    mutation(
        "what alert servers have quarantined is not shown",
        Promise.PROGRESS,
        "api/shoal/api/routes/health.py",
        ("        quarantine=aside,\n", ""),
        (
            "tests/integration/api/test_cluster.py::"
            "test_what_is_quarantined_is_told_with_reasons_to_administrators",
        ),
    ),
)

"""``shoal schedule`` and ``shoal calendar`` on a real cluster."""

import re
from pathlib import Path

from tests.integration.client.conftest import Shoal, workflow


def test_expression_is_previewed_without_a_cluster(shoal: Shoal) -> None:
    shown = shoal("schedule", "preview", "0 30 2 29 3 ? 2037", "--tz", "Europe/Berlin")
    assert (shown.status, shown.err) == (0, "")
    assert [re.sub(" +", " ", line).strip() for line in shown.out.splitlines()] == [
        "0 30 2 29 3 ? 2037 Europe/Berlin on_gap: shift, on_overlap: first",
        "local time UTC",
        "Sun 2037-03-29 03:00:00 +0200 2037-03-29 01:00:00 after the gap",
    ]
    both = ("--tz", "Europe/Berlin", "--on-overlap", "both", "-n", "9", "--json")
    found = shoal("schedule", "preview", "0 30 2 25 10 ? 2037", *both).json
    assert found["on_overlap"] == "both"
    assert [(one["local"], one["utc"], one["marks"]) for one in found["fire_times"]] == [
        ("2037-10-25T02:30:00+02:00", "2037-10-25T00:30:00Z", ["1st pass"]),
        ("2037-10-25T02:30:00+01:00", "2037-10-25T01:30:00Z", ["2nd pass"]),
    ]
    never = shoal("schedule", "preview", "0 0 30 2 *")
    assert (never.status, never.err) == (0, "it never fires again\n")
    wrong = shoal("schedule", "preview", "61 2 * * *")
    assert wrong.status == 2
    assert "minute" in wrong.err


def test_calendar_is_made_used_and_kept_while_it_is_used(here: Shoal) -> None:
    Path("days.txt").write_text("# closed\n2098-06-02 Monday\n")
    made = here("calendar", "set", "off/closed", "days.txt", "2098-06-04", "--description", "x")
    assert (made.status, made.err) == (0, "calendar off/closed has 2 days\n")
    assert here("calendar", "show", "off/closed").out == "2098-06-02\n2098-06-04\n"
    assert re.search(
        r"^off/closed +2 +2098-06-02 +2098-06-04 +x", here("calendar", "list").out, re.MULTILINE
    )
    workflow(
        "seldom",
        "true",
        "project: off",
        "schedules:",
        "- {cron: 0 6 * * *, start: 2098-06-01, calendar: closed, missed: all}",
        "- {cron: 0 7 * * *, enabled: false, timezone: Asia/Tokyo, end: 2099-01-01}",
    )
    assert here("apply", ".").status == 0
    first, second = here("schedule", "list", "seldom", "--json").json
    assert [one["id"] for one in here("schedule", "list", "--json").json].count(first["id"]) == 1
    listed = here("schedule", "list", "off/seldom").out
    assert re.search(
        r"0 6 \* \* \* +UTC +2098-06-01 .*calendar closed, from 2098-06-01 00:00 UTC", listed
    )
    assert re.search(r"0 7 \* \* \* +Asia/Tokyo +off +until 2099-01-01 00:00 Asia/Tokyo", listed)

    shown = here("schedule", "preview", "seldom", "-n", "3").out
    assert re.search(r"Mon 2098-06-02 06:00:00 \+0000 +2098-06-02 06:00:00 +left out", shown)
    assert "switched off: it would fire at" in shown
    found = here("schedule", "preview", "seldom", "-n", "3", "--json").json
    assert [one["id"] for one in found] == [first["id"], second["id"]]
    assert [one["fires"] for one in found[0]["fire_times"]] == [True, False, True]
    expression = ("schedule", "preview", "0 0 6 4 6 ? 2098", "--project", "off")
    assert "left out" in here(*expression, "--calendar", "closed").out
    assert here(*expression, "--calendar", "open").status == 3

    used = here("calendar", "delete", "off/closed")
    assert used.status == 1
    assert "used by the schedules of seldom" in used.err
    workflow("seldom", "true", "project: off")
    assert here("apply", ".").status == 0
    assert here("calendar", "delete", "off/closed").err == "calendar off/closed is deleted\n"
    assert here("calendar", "show", "off/closed").status == 3
    assert here("schedule", "list", "seldom").err.startswith("no schedules;")
    assert here("schedule", "preview", "seldom").err == "workflow off/seldom has no schedules\n"


def test_days_that_are_none_end_with_2(here: Shoal) -> None:
    wrong = here("calendar", "set", "closed", "2098-02-30")
    assert wrong.status == 2
    assert "not a day such as" in wrong.err
    assert here("calendar", "set", "a/b", "2098-02-03", "--project", "c").status == 2


def test_many_schedules_are_paused_at_once(here: Shoal) -> None:
    for name in ("one", "two"):
        workflow(name, "true", "project: many", "schedules: [{cron: 0 0 6 * * ?}]")
    assert here("apply", ".").status == 0
    listed = here("schedule", "list", "--project", "many", "--json").json
    ids = [str(one["id"]) for one in listed]
    shown = here("schedule", "pause", *ids, "--dry-run")
    assert (shown.status, shown.err.count("is not paused")) == (0, 2)
    paused = here("schedule", "pause", *ids, "899999")
    assert paused.status == 1
    assert paused.err.count(" is paused") == 2
    assert "there is no schedule 899999" in paused.err
    back = here("schedule", "resume", "--workflow", "many/one")
    assert (back.status, back.err.count("fires next: 20")) == (0, 1)
    assert len(here("schedule", "resume", "--project", "many", "--json").json["items"]) == 2
    assert here("schedule", "pause").status == 2
    assert here("schedule", "pause", ids[0], "--project", "many").status == 2
    assert here("schedule", "pause", "899999").status == 3

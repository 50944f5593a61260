"""The fault suite's own machinery, where a fault of it would make a run clean for no reason."""

import asyncio
import random
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import cast

import httpx
import pytest

from shoal.runtime import failpoints
from tests.chaos import plan
from tests.chaos.cluster.cluster import POSTGRESQL, SQLITE, Cluster
from tests.chaos.cluster.links import Link, Mode, Network
from tests.chaos.cluster.sink import Mood, Sink
from tests.chaos.faults.catalogue import FAULTS, POINTS, chosen
from tests.chaos.faults.fault import Fault
from tests.chaos.judging.verdict import Kind, Offence, Verdict
from tests.chaos.judging.waits import PREFIX
from tests.chaos.observer import View
from tests.chaos.plan import Outcome, draw
from tests.chaos.records import STALL, FaultRecord, now_s
from tests.chaos.reports.figures import FIGURES, LOSS_DELAY
from tests.chaos.reports.parts import Result, load, merge, split, store
from tests.chaos.reports.report import RunInfo, render
from tests.chaos.stalls import StallWatch

INFO = RunInfo(seed=7, duration_s=90, session_timeout_s=2.0, commit="abc", machine="2 cores")
KILL = FaultRecord("kill-master", "m", 10.0, 11.0, 12.5, True, "died", taken_over_s=13.0)
CLEAN = Verdict([], {"instances": 12}, {LOSS_DELAY: [2.0, 2.5]})
STUCK = Verdict([Offence(Kind.STUCK, "open instance", "still RUNNING", 3, "a", 1)] * 101)


def test_every_fault_is_drawn_as_often_as_the_others_and_a_seed_repeats_the_plan() -> None:
    drawn = Counter(f.name for e in draw(3, 5 * len(FAULTS), FAULTS) for f in e.faults)
    assert sum(drawn.values()) == 5 * len(FAULTS)
    simple = chosen("kill-,pause-,cut-")
    assert {drawn[name] for name in simple} == {5}
    plans = [[[f.dice.getstate() for f in e.faults] for e in draw(s, 9, FAULTS)] for s in (7, 7, 8)]
    assert plans[0] == plans[1] != plans[2]
    assert set(POINTS) == {f"failpoint:{n}" for n in (*failpoints.MASTER, *failpoints.WORKER)}


async def test_fault_counts_as_lifted_when_its_healing_begins() -> None:
    """A quorum is back before the servers that make it have all answered."""

    class SlowToHeal(Fault):
        name = "slow-to-heal"
        healing_s = 0.0

        async def begin(self, cluster: Cluster) -> None:
            self.target = "nothing"

        async def heal(self, cluster: Cluster) -> None:
            self.healing_s = now_s()
            await asyncio.sleep(0.01)

        def bit(self, after: View) -> tuple[bool, str]:
            return True, ""

    fault = SlowToHeal(random.Random(1))
    nothing = cast("Cluster", None), cast("View", None)
    one = await plan._one(nothing[0], fault, nothing[1], 0.0, Outcome())
    assert one is not None
    assert one.lifted_s <= fault.healing_s < one.healed_s


async def test_links_lose_requests_or_answers_and_refuse() -> None:
    arrived: list[bytes] = []

    async def closed(writer: asyncio.StreamWriter) -> None:
        writer.close()
        with suppress(ConnectionError):
            await writer.wait_closed()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError):
            while line := await reader.readline():
                arrived.append(line)
                writer.write(line)
        await closed(writer)

    async def said(link: Link, line: bytes, mode: Mode = Mode.OPEN) -> bytes:
        """Return the answer to a line that is sent in a mode; nothing if the connection breaks."""
        reader, writer = await asyncio.open_connection("127.0.0.1", link.ports[0])
        try:
            writer.write(b"before\n")
            assert await reader.readline() == b"before\n"
            link.set(mode)
            writer.write(line)
            await writer.drain()
            while mode is Mode.LOSING_REPLIES and line not in arrived:
                await asyncio.sleep(0.01)
            if mode is not Mode.REFUSING:
                link.set(Mode.OPEN)  # breaks what has a hole
            return await reader.readline()
        except ConnectionError:
            return b""
        finally:
            await closed(writer)
            link.set(Mode.OPEN)

    serving: list[asyncio.Task[None]] = []
    server = await asyncio.start_server(
        lambda *streams: serving.append(asyncio.create_task(serve(*streams))), "127.0.0.1", 0
    )
    async with asyncio.timeout(100), server:
        with Network() as network:
            link = network.link("test", [("127.0.0.1", server.sockets[0].getsockname()[1])])
            assert await said(link, b"open\n") == b"open\n"
            assert await said(link, b"done\n", Mode.LOSING_REPLIES) == b""
            assert await said(link, b"lost\n", Mode.LOSING_REQUESTS) == b""
            assert await said(link, b"refused\n", Mode.REFUSING) == b""
            assert await said(link, b"late\n", Mode.FROZEN) == b"late\n"
            link.swallow(b"COMMIT", 1)
            assert await said(link, b"COMMIT\n") == b""
            assert (await said(link, b"last\n"), link.swallowed) == (b"last\n", 1)
        await asyncio.gather(*serving)
    assert [line for line in arrived if line != b"before\n"] == [
        *(b"open\n", b"done\n", b"late\n", b"COMMIT\n", b"last\n")
    ]


def test_only_a_long_stall_of_the_machine_is_an_excuse() -> None:
    watch = StallWatch(4.0)
    watch.note(90.0, 90.9)
    watch.note(100.0, 102.5)
    [record] = watch.records
    assert (record.began_s, record.healed_s, record.costs_workers) == (100.0, 102.5, True)


def test_a_missed_figure_and_an_offence_are_shown_and_company_is_not_held_against_it() -> None:
    figure, crowded = FIGURES[0], replace(KILL, taken_over_s=99.0, alone=False)
    assert figure.is_met(CLEAN, [KILL, crowded], INFO.session_timeout_s)
    for verdict, record in (
        (CLEAN, replace(KILL, taken_over_s=15.1)),  # the session timeout and 3 s are 5 s
        (CLEAN, replace(KILL, recovered_s=None)),
        (STUCK, KILL),
    ):
        assert not figure.is_met(verdict, [KILL, record], INFO.session_timeout_s)
        assert "**missed**" in render(result(verdict, [KILL, record]), INFO)
    assert "**not clean** (101 offences)" in (text := render(result(STUCK), INFO))
    assert "- stuck (open instance): instance 3 a attempt 1 — still RUNNING" in text


def result(
    verdict: Verdict, records: Sequence[FaultRecord] = (), skipped: Sequence[str] = ()
) -> Result:
    outcome = Outcome(list(records), list(skipped))
    return Result(verdict, outcome, session_timeout_s=INFO.session_timeout_s)


@pytest.mark.parametrize(
    ("records", "skipped", "said"),
    [
        ([KILL], ["disk-full: not root"], "1 faults skipped"),
        ([KILL, replace(KILL, bit=False)], [], "1 faults without effect"),
        ([replace(KILL, taken_over_s=15.1)], [], "1 targets missed"),
    ],
)
def test_run_that_tried_or_reached_less_than_asked_is_not_clean(
    records: list[FaultRecord], skipped: list[str], said: str
) -> None:
    found = result(CLEAN, records, skipped)
    assert (found.is_sound, found.is_clean) == (True, False)
    assert f"**not clean** ({said})" in render(found, INFO)
    for whole in (merge([found, result(CLEAN, [KILL])]), merge([result(CLEAN, [KILL]), found])):
        assert not whole.is_clean


def test_run_whose_faults_had_effects_and_met_their_targets_is_clean() -> None:
    stall = FaultRecord(STALL, "the machine", 10.0, 12.0, 12.0, False, "stood still")
    found = result(CLEAN, [KILL, stall])
    assert found.is_clean
    assert "**clean**" in render(found, INFO)


def test_what_a_part_found_is_stored_and_in_the_whole(tmp_path: Path) -> None:
    parts = split(5, 1000)
    assert sum(part.faults for part in parts) == 1000
    outcome = Outcome([replace(KILL, frozen_pids=frozenset({7}))], ["a: skipped"], ["never whole"])
    found = Result(STUCK, outcome, ["master-1 ended"], ["pid 9"], [3], 60.0, "abc")
    store(parts[3].file(tmp_path), found)
    assert load(parts[3].file(tmp_path)) == found
    assert load(parts[2].file(tmp_path)) is None
    whole = merge([Result(CLEAN, Outcome(), commit="def"), found])
    assert not whole.is_clean
    assert (whole.verdict.offences, whole.outcome.records) == (STUCK.offences, outcome.records)
    assert whole.outcome.trouble == ["part 2: never whole"]
    assert whole.leftovers == ["part 2: pid 9"]
    assert whole.open_instances == [3]


def test_report_says_what_each_project_waited_for() -> None:
    samples = {f"{PREFIX}flood: command PENDING": [1.0, 9.0], f"{PREFIX}a: task QUEUED": []}
    text = render(result(replace(CLEAN, samples=samples)), INFO)
    assert "| flood: command PENDING | 2 | p50 1.00 s, p99 9.00 s, max 9.00 s |" in text
    assert "a: task QUEUED" not in text


@pytest.mark.parametrize(
    ("mood", "status"), [(Mood.ANSWERING, 204), (Mood.FAILING, 503), (Mood.HANGING, None)]
)
async def test_receiver_of_alerts_takes_hangs_or_fails(mood: Mood, status: int | None) -> None:
    with Sink() as sink:
        sink.mood = mood
        async with httpx.AsyncClient(timeout=1.0, trust_env=False) as client:
            answered = None
            with suppress(httpx.ReadTimeout):
                answered = (await client.post(sink.url, json={"key": "k"})).status_code
            assert answered == status
            assert (sink.received["k"], sink.spoilt) == ((1, 0) if status == 204 else (0, 1))
            sink.mood = Mood.ANSWERING
            assert (await client.post(sink.url, json={"key": "again"})).status_code == 204
        assert sink.received == {"again": 1, **({"k": 1} if status == 204 else {})}


def test_sqlite_has_every_fault_but_those_of_a_database_server() -> None:
    without = set(chosen("", POSTGRESQL)) - set(chosen("", SQLITE))
    assert {"postgresql-down", "cut-database", "swallow-commit"} <= without
    assert not without & set(chosen("kill-,pause-,junk-,power-cut,purge-", POSTGRESQL))
    with pytest.raises(ValueError, match="no fault is called 'postgresql-down'"):
        chosen("postgresql-down", SQLITE)

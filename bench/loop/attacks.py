"""How long hostile texts hold the event loop of a service. ``python -m bench.loop.attacks``.

Each attack is one text of a user, worked on as a master, an API or an alert server does it. The
table has the processor time of the loop's own thread, its longest step, and the time that the
answer took. Steps are those of asyncio's own loop (``steps``).

Then the usual texts are worked on again and again, and after them all attacks, while the loop is
measured as every process of Shoal measures its own (``LoopLag``). The longest step under attack is
to be at most twice the longest one of the usual texts.
"""

import asyncio
import json
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from functools import partial
from pathlib import Path

from bench.loop.steps import watching_steps
from bench.support.machine import machine
from bench.support.quiet import log_warnings_to_stderr
from shoal.api.web.body import JsonRequest
from shoal.coordination import background
from shoal.coordination.session.loop_lag import IDLE_INTERVAL_S, LoopLag
from shoal.core.errors import ShoalError
from shoal.core.runs.run import Attempt, Run, WorkflowPlan
from shoal.core.runs.states import WorkflowState
from shoal.runtime.side.process import SideProcesses
from shoal.runtime.side.templates import Templates
from shoal.sql import Database
from tests.integration.master.dispatch.payloads import NOW, maker_of
from tests.unit.core.decide.driving import spec

_USUAL = "usual"
_LARGE = 600_000
PARAMETERS = {
    _USUAL: "s3://bucket/${day}",
    "${ not closed": "${" * (_LARGE // 2),
    "$[ not closed": "$[" * (_LARGE // 2),
    "dates that differ": "".join(f"$[yyyyMMdd+{n}]" for n in range(_LARGE // 17)),
    "quotes in a date": "$[" + "'" * _LARGE,
    "dollar signs": "$" * 8_000_000,
}
_LONG = "{% assign s = 'x' %}" + "{% assign s = s | append: s %}" * 15
TEMPLATES = {
    _USUAL: "{{ subject }}",
    "filters": _LONG + "{{ s" + " | split: '' | sort | join: ''" * 150 + " | size }}",
    "braces": "{" * 20_000,
    "a range": "{{ (1..99999999999) | join: '' }}",
    "assignments": "{% for i in (1..10000) %}" + "{% assign a = i %}" * 1_000 + "{% endfor %}",
}
BODIES = {
    _USUAL: {"name": "w", "tasks": []},
    "300,000 unknown fields": {f"u{n}": 1 for n in range(300_000)},
    "1,000,000 items": [[1] * 1_000] * 1_000,
}


_PHASE_S = 10.0
_MOST_RATIO = 2.0

Work = Callable[[], Awaitable[object]]


async def _measure(attack: str, work: Work) -> str:
    with watching_steps() as steps:
        began_s, cpu_s = time.monotonic(), time.thread_time()
        outcome = await _outcome(work)
        cpu_ms, took_ms = (time.thread_time() - cpu_s) * 1e3, (time.monotonic() - began_s) * 1e3
    longest_ms = max(steps.longest_ms.values(), default=0.0)
    return f"| {attack} | {longest_ms:.1f} | {cpu_ms:.1f} | {took_ms:.0f} | {outcome} |\n"


async def _outcome(work: Work) -> str:
    try:
        await work()
    except ShoalError as error:
        return str(error)[:60]
    return "done"


async def _longest_ms(works: Mapping[str, Work]) -> float:
    """Return the longest step of this loop, as health shows it, while all of ``works`` are done."""
    lag, until_s = LoopLag(), time.monotonic() + _PHASE_S
    measuring = background.start(lag.run(), "lag of the event loop")
    while time.monotonic() < until_s:
        for work in works.values():
            await _outcome(work)
    await asyncio.sleep(IDLE_INTERVAL_S)  # the last measurement
    await background.stop(measuring)
    return lag.steps.ever_s * 1e3


async def measure(folder: Path) -> str:
    """Return the table of all attacks and the ratio of the longest steps, as Markdown."""
    text = "| attack | longest step ms | processor ms | took ms | outcome |\n"
    text += "| --- | ---: | ---: | ---: | --- |\n"
    async with Database(f"sqlite:///{folder}/shoal.db") as database, SideProcesses() as processes:
        await database.migrate()
        works = dict(_works(database, processes))
        for name, work in works.items():
            text += await _measure(name, work)
        usual = {name: work for name, work in works.items() if name.endswith(f": {_USUAL}")}
        usual_ms = await _longest_ms(usual)
        attacked_ms = await _longest_ms({n: work for n, work in works.items() if n not in usual})
    return text + (
        f"\nlongest step of usual texts: {usual_ms:.1f} ms, under attack: {attacked_ms:.1f} ms, "
        f"ratio {attacked_ms / usual_ms:.1f} (goal: at most {_MOST_RATIO:g})\n"
    )


def _works(database: Database, processes: SideProcesses) -> Iterator[tuple[str, Work]]:
    """Yield the work on each text, with its name."""
    maker = maker_of(database)
    for name, value in PARAMETERS.items():
        attempt = Attempt("a", 1, id=7)
        plan = WorkflowPlan.of(spec({"a": {}}))
        run = Run(
            *(3, plan, WorkflowState.RUNNING, 5, {"a": attempt}, NOW, NOW),
            startup={"big": value, "day": "$[yyyyMMdd]"},
        )
        yield f"parameter: {name}", partial(maker.make, run, attempt)
    templates = Templates(processes)
    for name, template in TEMPLATES.items():
        facts = {"subject": "daily failed"}
        yield f"template: {name}", partial(templates.render, "p", template, facts)
    for name, body in BODIES.items():
        yield f"body: {name}", partial(_parsed, json.dumps(body).encode())


async def _parsed(content: bytes) -> None:
    scope = {
        "type": "http",
        "method": "PUT",
        "headers": [(b"content-type", b"application/json")],
        "path": "/",
    }

    async def receive() -> dict[str, object]:
        return {"type": "http.request", "body": content, "more_body": False}

    request = JsonRequest(scope, receive)
    await request.read()
    await request.parse_json()


def main() -> None:
    """Entry point of the program."""
    log_warnings_to_stderr()
    with tempfile.TemporaryDirectory(prefix="shoal-bench-") as folder:
        table = asyncio.run(measure(Path(folder)))
    sys.stdout.write(f"{table}\n{machine()}\n")


if __name__ == "__main__":
    main()

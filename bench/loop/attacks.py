"""How long hostile texts hold the event loop of a service. ``python -m bench.loop.attacks``.

Each attack is one text of a user, worked on as a master, an API or an alert server does it. The
table has the processor time of the loop's own thread, its longest step, and the time that the
answer took. Steps are those of asyncio's own loop (``steps``).
"""

import asyncio
import json
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path

from bench.loop.steps import watching_steps
from bench.support.machine import machine
from bench.support.quiet import log_warnings_to_stderr
from shoal.api.web.body import JsonRequest
from shoal.core.errors import ShoalError
from shoal.core.runs.run import Attempt, Run, WorkflowPlan
from shoal.core.runs.states import WorkflowState
from shoal.runtime.side.process import SideProcesses
from shoal.runtime.side.templates import Templates
from shoal.sql import Database
from tests.integration.master.dispatch.payloads import NOW, maker_of
from tests.unit.core.decide.driving import spec

_LARGE = 600_000
PARAMETERS = {
    "usual": "s3://bucket/${day}",
    "${ not closed": "${" * (_LARGE // 2),
    "$[ not closed": "$[" * (_LARGE // 2),
    "dates that differ": "".join(f"$[yyyyMMdd+{n}]" for n in range(_LARGE // 17)),
    "quotes in a date": "$[" + "'" * _LARGE,
    "dollar signs": "$" * 8_000_000,
}
_LONG = "{% assign s = 'x' %}" + "{% assign s = s | append: s %}" * 15
TEMPLATES = {
    "usual": "{{ subject }}",
    "filters": _LONG + "{{ s" + " | split: '' | sort | join: ''" * 150 + " | size }}",
    "braces": "{" * 20_000,
    "a range": "{{ (1..99999999999) | join: '' }}",
    "assignments": "{% for i in (1..10000) %}" + "{% assign a = i %}" * 1_000 + "{% endfor %}",
}
BODIES = {
    "usual": {"name": "w", "tasks": []},
    "300,000 unknown fields": {f"u{n}": 1 for n in range(300_000)},
    "1,000,000 items": [[1] * 1_000] * 1_000,
}


async def _measure(attack: str, work: Callable[[], Awaitable[object]]) -> str:
    with watching_steps() as steps:
        began_s, cpu_s = time.monotonic(), time.thread_time()
        try:
            await work()
            outcome = "done"
        except ShoalError as error:
            outcome = str(error)[:60]
        cpu_ms, took_ms = (time.thread_time() - cpu_s) * 1e3, (time.monotonic() - began_s) * 1e3
    longest_ms = max(steps.longest_ms.values(), default=0.0)
    return f"| {attack} | {longest_ms:.1f} | {cpu_ms:.1f} | {took_ms:.0f} | {outcome} |\n"


async def measure(folder: Path) -> str:
    """Return the table of all attacks, as Markdown."""
    text = "| attack | longest step ms | processor ms | took ms | outcome |\n"
    text += "| --- | ---: | ---: | ---: | --- |\n"
    async with Database(f"sqlite:///{folder}/shoal.db") as database, SideProcesses() as processes:
        await database.migrate()
        maker = maker_of(database)
        for name, value in PARAMETERS.items():
            attempt = Attempt("a", 1, id=7)
            plan = WorkflowPlan.of(spec({"a": {}}))
            run = Run(
                *(3, plan, WorkflowState.RUNNING, 5, {"a": attempt}, NOW, NOW),
                startup={"big": value, "day": "$[yyyyMMdd]"},
            )
            text += await _measure(f"parameter: {name}", partial(maker.make, run, attempt))
        templates = Templates(processes)
        for name, template in TEMPLATES.items():
            facts = {"subject": "daily failed"}
            text += await _measure(
                f"template: {name}", partial(templates.render, "p", template, facts)
            )
        for name, body in BODIES.items():
            content = json.dumps(body).encode()
            text += await _measure(f"body: {name}", partial(_parsed, content))
    return text


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

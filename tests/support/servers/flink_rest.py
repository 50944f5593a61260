"""A server on the loopback that answers as Flink's REST API does, for contract tests.

What it says has been seen from a real Flink 2.3; tests/flink holds the tests against one.
"""

import asyncio
import json
import re
import ssl
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from shoal.core.data_sources import DataSource
from tests.support.servers.http_server import Handler, HttpServer, Received, answer

STACK = """\
"flink-jar-runner-thread-6" Id=133 TIMED_WAITING
\tat {main_class}.main(Job.java:22)
\tat app//org.apache.flink.client.program.PackagedProgram.callMainMethod(PackagedProgram.java:359)
\tat app//org.apache.flink.runtime.webmonitor.handlers.JarRunHandler.lambda$handleRequest$0
"""
_EXCEPTION = "org.apache.flink.client.program.ProgramInvocationException"
NO_CLASS = """\
<Exception on server side:
java.util.concurrent.CompletionException: {invocation} class 'Nope' was not found in the jar file.
\tat org.apache.flink.runtime.webmonitor.handlers.JarRunHandler.handleRequest(JarRunHandler)
Caused by: {invocation} class 'Nope' was not found in the jar file.
\t... 41 more
Caused by: java.lang.ClassNotFoundException: Nope
\t... 41 more

End of exception on server side>""".format(invocation=f"{_EXCEPTION}: The program's entry point")
MAIN_FAILED = f"""\
org.apache.flink.runtime.rest.handler.RestHandlerException: Could not execute application.
\tat org.apache.flink.runtime.webmonitor.handlers.JarRunHandler.lambda$handleRequest$1
Caused by: {_EXCEPTION}: The main method caused an error: no such table
Caused by: java.lang.IllegalArgumentException: no such table
"""
FAILURE = """\
org.apache.flink.runtime.JobException: Recovery is suppressed by NoRestartBackoffTimeStrategy
\tat org.apache.flink.runtime.executiongraph.failover.ExecutionFailureHandler.handleFailure
Caused by: java.lang.IllegalStateException: the third number is wrong
\tat Jobs$Failing.map(Jobs.java:56)
"""


class _Every(dict[str, Handler]):
    """Gives every path the same handler."""

    def __init__(self, handler: Handler) -> None:
        self._handler = handler

    def get(self, path: str, default: Any = None) -> Any:
        return self._handler


@dataclass
class FlinkRest:
    """A cluster. ``jobs`` are states by ids; ``states`` those that a job goes through from its
    start on, one at each look. ``starting`` are the stacks of threads, for each dump of them.
    """

    jobs: dict[str, str] = field(default_factory=dict)
    jars: dict[str, str] = field(default_factory=dict)
    states: list[str] = field(default_factory=lambda: ["RUNNING", "FINISHED"])
    starting: list[list[str]] = field(default_factory=list)
    refusal: tuple[int, str] | None = None  # of a program, with its trace
    tasks: dict[str, int] = field(default_factory=lambda: {"RUNNING": 2})
    trace: str = FAILURE
    accumulators: list[dict[str, Any]] = field(default_factory=list)
    savepoint: str = ""
    busy: int = 0  # how many requests to delete a jar are refused
    stale: int = 0  # how many looks at a job's details show it as it was before
    on_run: Callable[[str], Awaitable[None]] | None = None  # called with the job's id
    on_clear: Callable[[], object] | None = None  # called when no program is being started any more
    tls: ssl.SSLContext | None = None
    body: dict[str, Any] = field(default_factory=dict)  # of the last run
    authorization: str = ""
    _left: dict[str, list[str]] = field(default_factory=dict)

    def serve(self) -> HttpServer:
        return HttpServer(_Every(self._handle), tls=self.tls)

    async def _handle(self, received: Received, writer: asyncio.StreamWriter) -> None:
        self.authorization = received.headers.get("authorization", "")
        path, _, _ = received.target.partition("?")
        status, found = await self._answer(received.method, path, received.body)
        writer.write(answer(status, json.dumps(found), Content_Type="application/json"))
        await writer.drain()

    async def _answer(self, method: str, path: str, body: bytes) -> tuple[int, Any]:
        parts = path.strip("/").split("/")
        match [method, *parts]:
            case ["GET", "config"]:
                return 200, {"flink-version": "2.3.0", "refresh-interval": 3000}
            case ["GET", "jobmanager", "thread-dump"]:
                return 200, {"threadInfos": self._threads()}
            case [_, "jars", *rest]:
                return await self._jars(method, rest, body)
            case ["GET", "jobs"]:
                jobs = [{"id": job, "status": state} for job, state in self.jobs.items()]
                return 200, {"jobs": jobs}
            case [_, "jobs", job, *rest]:
                return self._job(method, job, rest)
        return 404, {"errors": ["Not found: " + path]}

    def _threads(self) -> list[dict[str, str]]:
        stacks = self.starting.pop(0) if self.starting else []
        if not stacks and self.on_clear is not None:
            self.on_clear()
        return [{"threadName": "t", "stringifiedThreadInfo": stack} for stack in stacks]

    async def _jars(self, method: str, rest: list[str], body: bytes) -> tuple[int, Any]:
        match [method, *rest]:
            case ["GET"]:
                files = [{"id": jar, "name": name} for jar, name in self.jars.items()]
                return 200, {"files": files}
            case ["POST", "upload"]:
                found = re.search(rb'filename="([^"]+)"', body)
                assert found is not None
                name = found[1].decode()
                self.jars[f"0b-{name}"] = name
                return 200, {"filename": f"/upload/0b-{name}", "status": "success"}
            case ["POST", jar, "run"] if jar in self.jars:
                return await self._run(json.loads(body))
            case ["DELETE", _] if self.busy > 0:
                self.busy -= 1
                return 503, {"errors": ["busy"]}
            case ["DELETE", jar] if jar in self.jars:
                del self.jars[jar]
                return 200, {}
        return 400, {"errors": ["RestHandlerException: Jar file does not exist"]}

    async def _run(self, body: dict[str, Any]) -> tuple[int, Any]:
        self.body = body
        job = str(body["jobId"])
        if self.on_run is not None:
            await self.on_run(job)
        if self.refusal is not None:
            status, trace = self.refusal
            return status, {"errors": ["Internal server error.", trace]}
        self._left[job] = list(self.states)
        self.jobs[job] = self._left[job].pop(0)
        return 200, {"jobid": job}

    def _job(self, method: str, job: str, rest: list[str]) -> tuple[int, Any]:
        if job not in self.jobs:
            trace = "org.apache.flink.runtime.messages.FlinkJobNotFoundException: Could not find"
            return (500 if rest == ["status"] else 404), {"errors": ["x", trace]}
        match [method, *rest]:
            case ["GET", "status"]:
                state = self.jobs[job]
                if state == "CANCELLING":
                    self.jobs[job] = "CANCELED"
                elif self._left.get(job):
                    self.jobs[job] = self._left[job].pop(0)
                return 200, {"status": state}
            case ["GET"]:
                self.stale -= 1
                state = "RUNNING" if self.stale >= 0 else self.jobs[job]
                vertex = {"name": "Source -> Sink", "status": state, "tasks": self.tasks}
                return 200, {"state": state, "vertices": [vertex]}
            case ["PATCH"]:
                if self.jobs[job] in ("FINISHED", "FAILED", "CANCELED"):
                    return 409, {"errors": ["reached another terminal state"]}
                self._left.pop(job, None)
                self.jobs[job] = "CANCELLING"
                return 202, {}
            case ["GET", "exceptions"]:
                return 200, {"exceptionHistory": {"entries": [{"stacktrace": self.trace}]}}
            case ["GET", "accumulators"]:
                shown = self.accumulators if self.stale < 0 else []
                return 200, {"user-task-accumulators": shown}
            case ["GET", "checkpoints"]:
                has_one = self.savepoint and self.stale < 0
                saved = {"external_path": self.savepoint} if has_one else None
                return 200, {"latest": {"savepoint": saved}}
            case ["POST", "stop"]:
                return 202, {"request-id": job}
            case ["GET", "savepoints", _]:
                self._left.pop(job, None)
                self.jobs[job] = "FINISHED" if self.savepoint else self.jobs[job]
                operation: dict[str, Any] = {"location": self.savepoint}
                if not self.savepoint:
                    operation = {"failure-cause": {"stack-trace": "x.Exception: disk full"}}
                return 200, {"status": {"id": "COMPLETED"}, "operation": operation}
        return 404, {"errors": ["Not found"]}


def source_of(server: HttpServer, **changes: Any) -> DataSource:
    """Return the data source of a server."""
    fields = {"host": "127.0.0.1", "port": server.port, **changes}
    return DataSource("farm", "flink", **fields)

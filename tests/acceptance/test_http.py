"""HTTP tasks in a real cluster: a job is submitted, followed and given on; workers are killed."""

import json
import os
import signal
import threading
from collections.abc import Iterator
from contextlib import closing, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from shoal.client.local.cluster import LocalCluster
from shoal.client.local.zookeeper import free_port
from tests.acceptance.faults.masters import watched
from tests.acceptance.rest import Rest
from tests.support.waiting import DEADLINE_S, SERVICE_SESSION_S


class Jobs(ThreadingHTTPServer):
    """A service with jobs: POST /jobs, then GET /jobs/1 until it is done.

    GET /slow answers when the ``gate`` is open.
    """

    daemon_threads = True

    def __init__(self) -> None:
        self.asked: list[tuple[str, str, str]] = []  # method, path, authorization
        self.bodies: list[bytes] = []
        self.gate = threading.Event()
        super().__init__(("127.0.0.1", 0), _Handler)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def count(self, path: str) -> int:
        return sum(path == asked for _, asked, _ in self.asked)


class _Handler(BaseHTTPRequestHandler):
    server: Jobs

    def do_POST(self) -> None:
        self._note()
        self.server.bodies.append(self.rfile.read(int(self.headers["Content-Length"])))
        if self.path == "/hang":
            self.server.gate.wait(2 * DEADLINE_S)
            return
        self._say(202, {"id": 1}, Location="/jobs/1")

    def do_GET(self) -> None:
        self._note()
        if self.path == "/slow":
            self.server.gate.wait(2 * DEADLINE_S)
            with suppress(ConnectionError):  # of a request that was ended
                self._say(200, {"slow": True})
            return
        if self.path in ("/missing", "/busy"):
            self._say(404 if self.path == "/missing" else 503, {})
            return
        done = self.server.count("/jobs/1") >= 3
        self._say(200, {"state": "DONE" if done else "RUNNING", "rows": 27_004})

    def _note(self) -> None:
        self.server.asked.append((self.command, self.path, self.headers.get("Authorization", "")))

    def _say(self, status: int, value: Any, **headers: str) -> None:
        body = json.dumps(value).encode()
        self.send_response(status)
        for name, text in {**headers, "Content-Length": str(len(body))}.items():
            self.send_header(name, text)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *arguments: Any) -> None:
        """Say nothing."""


@pytest.fixture
def jobs() -> Iterator[Jobs]:
    with Jobs() as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.gate.set()
        server.shutdown()
        thread.join()


@pytest.fixture
def cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[LocalCluster]:
    """One whose worker may reach its own machine, and comes back when it is killed."""
    monkeypatch.setenv("SHOAL_SESSION_TIMEOUT_S", str(SERVICE_SESSION_S))
    monkeypatch.setenv("SHOAL_WORKER_HTTP_ALLOW", "127.0.0.1")
    with (
        LocalCluster(tmp_path / "data", workers=1, slots=2, api_port=free_port()) as running,
        watched(running),
    ):
        yield running


def http(params: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {"type": "HTTP", "params": params, **fields}


def test_requests_in_a_real_cluster(cluster: LocalCluster, jobs: Jobs) -> None:
    with closing(Rest(cluster.url, cluster.token)) as rest:
        _submitted_and_followed(rest, jobs)
        _tried_again_only_where_it_helps(rest, jobs)
        _killed(rest, jobs)
        _not_repeated_after_the_worker_died(cluster, rest, jobs)
        _repeated_after_the_worker_died(cluster, rest, jobs)


def _submitted_and_followed(rest: Rest, jobs: Jobs) -> None:
    rest.put("/projects/default/secrets/api", {"value": "hush-hush"})
    submit = {
        "method": "POST",
        "url": "${base}/jobs",
        "auth": {"bearer": "${secret.api}"},
        "body": {"json": {"day": "$[yyyyMMdd]"}},
        "timeout": "5m",
        "poll": {
            "url_from": "headers.Location",
            "until": {"json": {"$.state": ["DONE", "FAILED"]}},
            "every": "100ms",
        },
        "success": {"json": {"$.state": "DONE"}},
        "outputs": {"rows": "$.rows"},
        "log_body": True,
    }
    rest.publish(
        "follow",
        {
            "submit": http(submit),
            "report": {"script": 'echo "$rows rows"', "depends_on": ["submit"]},
        },
        parameters={"base": jobs.url},
    )
    run = rest.start("follow", logical_time="2024-03-01T12:00:00Z")
    assert rest.wait_for(run)["state"] == "SUCCEEDED", rest.tasks(run)
    tasks = rest.tasks(run)
    assert rest.log(tasks["report"]["id"]) == "27004 rows\n"
    assert jobs.asked == [
        ("POST", "/jobs", "Bearer hush-hush"),
        *[("GET", "/jobs/1", "Bearer hush-hush")] * 3,
    ]
    assert jobs.bodies == [b'{"day": "20240301"}']
    log = rest.log(tasks["submit"]["id"])
    assert "hush" not in log
    assert '| {"state": "DONE", "rows": 27004}' in log


def _tried_again_only_where_it_helps(rest: Rest, jobs: Jobs) -> None:
    for path, method, times in (("/missing", "GET", 1), ("/busy", "GET", 3), ("/jobs", "POST", 1)):
        params: dict[str, Any] = {"url": jobs.url + path, "method": method}
        params["success"] = {"status": [200]}
        if method == "POST":
            params["outputs"] = {"gone": "$.gone"}
            params["success"] = {"status": [202]}
        before = jobs.count(path)
        rest.publish("retry", {"ask": http(params, retries=2, retry_delay="0s")})
        run = rest.start("retry")
        assert rest.wait_for(run)["state"] == "FAILED"
        assert jobs.count(path) - before == times, path
        assert rest.tasks(run)["ask"]["attempt"] == times


def _killed(rest: Rest, jobs: Jobs) -> None:
    slow = http({"url": f"{jobs.url}/slow", "timeout": "1h"})
    rest.publish("slow", {"slow": slow})
    run = rest.start("slow")
    rest.until(lambda: jobs.count("/slow"), lambda count: count == 1)
    rest.command("STOP", instance_id=run)
    assert rest.wait_for(run)["state"] == "STOPPED"
    assert rest.tasks(run)["slow"]["state"] == "KILLED"
    assert jobs.count("/slow") == 1


def _not_repeated_after_the_worker_died(cluster: LocalCluster, rest: Rest, jobs: Jobs) -> None:
    """What is not idempotent may have been carried out: a person decides."""
    slow = http(
        {"method": "POST", "url": f"{jobs.url}/hang", "body": {"text": "1"}, "timeout": "1h"}
    )
    rest.publish("hang", {"slow": {**slow, "retries": 3}})
    run = rest.start("hang")
    rest.until(lambda: jobs.count("/hang"), lambda count: count == 1)
    os.kill(cluster.pids()["worker-1"], signal.SIGKILL)
    assert rest.wait_for(run)["state"] == "FAILED"
    task = rest.tasks(run)["slow"]
    assert (task["state"], task["attempt"], jobs.count("/hang")) == ("LOST", 1, 1)
    assert "not run again by itself: it may have taken effect" in task["reason"]


def _repeated_after_the_worker_died(cluster: LocalCluster, rest: Rest, jobs: Jobs) -> None:
    """What is idempotent may be asked again: the attempt is LOST, and another one follows."""
    run = rest.start("slow")
    rest.until(lambda: jobs.count("/slow"), lambda count: count == 2)
    os.kill(cluster.pids()["worker-1"], signal.SIGKILL)
    rest.until(lambda: jobs.count("/slow"), lambda count: count == 3, timeout_s=2 * DEADLINE_S)
    jobs.gate.set()
    assert rest.wait_for(run)["state"] == "SUCCEEDED"
    assert rest.tasks(run)["slow"]["attempt"] == 2

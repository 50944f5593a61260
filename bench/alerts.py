"""Measure what alert servers cost a run: with none, with one and no rule, with rules about it.

On one cluster, in turns, so that what else the machine does hits all alike.
"""

import argparse
import os
import signal
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import psutil

from bench.support.machine import machine
from bench.support.quiet import log_warnings_to_stderr
from shoal.client.local.cluster import LocalCluster
from shoal.client.local.zookeeper import HOST, free_port
from shoal.client.rest.client import ShoalClient
from shoal.core.definition.model import WorkflowSpec

_WARM_UP = 20
_LOOK_S = 0.02
_SPEC = {
    "project": "default",
    "name": "short",
    "tasks": [{"name": "only", "type": "SHELL", "params": {"script": "true"}}],
}


def main() -> None:
    """Entry point of the program."""
    log_warnings_to_stderr()
    parser = argparse.ArgumentParser(prog="python -m bench.alerts", description=__doc__)
    parser.add_argument("--runs", type=int, default=40, help="of each kind in a round")
    parser.add_argument("--rounds", type=int, default=5)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name, _sink() as url:
        (Path(name) / "shoal.toml").write_text('[alert]\nhttp_allow = "127.0.0.0/8"\n')
        with (
            LocalCluster(Path(name), api_port=free_port()) as cluster,
            ShoalClient(cluster.url, cluster.token) as client,
        ):
            client.publish(WorkflowSpec.model_validate(_SPEC))
            _measured(client, _WARM_UP)
            lines = _compared(cluster, client, given.rounds, given.runs, url)
    sys.stdout.write("\n".join([*lines, f"({machine()})"]) + "\n")


def _compared(
    cluster: LocalCluster, client: ShoalClient, rounds: int, runs: int, url: str
) -> list[str]:
    server = psutil.Process(cluster.pids()["alert"])
    taken: dict[str, list[float]] = {"without": [], "no rule": [], "rules": []}
    for _ in range(rounds):
        os.kill(server.pid, signal.SIGSTOP)
        taken["without"] += _measured(client, runs)
        os.kill(server.pid, signal.SIGCONT)
        taken["no rule"] += _measured(client, runs)
    idle_s = _processor_s(server)
    time.sleep(10)
    idle_s = _processor_s(server) - idle_s
    _define(client, url)
    taken["rules"] = _measured(client, rounds * runs)
    base = statistics.median(taken["without"])
    return [
        f"{kind}: median {statistics.median(some) * 1000:.1f} ms, "
        f"ratio {statistics.median(some) / base:.3f} ({len(some)} runs)"
        for kind, some in taken.items()
    ] + [f"an alert server without rules: {idle_s * 100:.1f} ms of processor time a second"]


def _measured(client: ShoalClient, count: int) -> list[float]:
    """Return the seconds that runs took, by the clock of the master."""
    found = []
    for _ in range(count):
        run = client.started(client.start("default", "short"))
        while (seen := client.get_instance(run))["finished_at"] is None:
            time.sleep(_LOOK_S)
        began, ended = map(datetime.fromisoformat, (seen["created_at"], seen["finished_at"]))
        found.append((ended - began).total_seconds())
    return found


def _define(client: ShoalClient, url: str) -> None:
    client.put_alert_channel(
        "default", "hook", {"kind": "webhook", "options": {"url": url}, "per_minute": 6000}
    )
    client.put_alert_receiver("default", "all", {"members": [{"targets": [{"channel": "hook"}]}]})
    for number in range(10):
        client.put_alert_rule(
            "default",
            f"rule-{number}",
            {
                "triggers": ["run.succeeded", "task.failed"],
                "receivers": ["all"],
                "group_for": "1s",
            },
        )


def _processor_s(process: psutil.Process) -> float:
    times = process.cpu_times()
    return float(times.user + times.system)


@contextmanager
def _sink() -> Iterator[str]:
    """Yield the address of a server that takes all messages."""

    class Taking(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["content-length"]))
            self.send_response(204)
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            """Be silent."""

    with HTTPServer((HOST, 0), Taking) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        yield f"http://{HOST}:{server.server_port}/"
        server.shutdown()
        thread.join()


if __name__ == "__main__":
    main()

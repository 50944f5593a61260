"""``shoal demo``: what a new user would type, typed for them on a cluster of their own.

Every step is the real command in a process of its own, shown before it runs; the supervisor looks
after the cluster meanwhile.
"""

import shlex
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from shoal.client.local.cluster import LocalCluster
from shoal.client.local.process import StopFlag, stop_signals
from shoal.client.rest.client import ShoalClient
from shoal.client.sources.definitions import load_definitions
from shoal.core.checks.workflow import InvalidDefinition

#: The workflow that runs when no file is given, and its task whose log shows the result.
EXAMPLE, REPORT = Path(__file__).with_name("example.yaml"), "report"
_WATCH_S = 0.1
_FAILED, _USAGE, _INTERRUPTED = 1, 2, 130


def demonstrate(
    data: Path,
    definition: Path,
    parameters: Sequence[str],
    show: Sequence[str],
    *,
    masters: int,
    workers: int,
    port: int | None,
) -> int:
    """Start a cluster, apply ``definition``, run it, print the logs of the tasks in ``show``.

    On a terminal the cluster stays up until Ctrl-C. Returns the exit status: 0 if the run
    succeeded.
    """
    try:
        (workflow,) = load_definitions([definition]).definitions
    except InvalidDefinition as error:
        _say(str(error))
        return _USAGE
    except ValueError:
        _say(f"{definition} must hold exactly one workflow")
        return _USAGE
    name = f"{workflow.spec.project}/{workflow.spec.name}"
    _say("Starting a cluster on this machine:")
    with (
        stop_signals() as stop,
        LocalCluster(
            data,
            masters=masters,
            workers=workers,
            api_port=port,
            progress=lambda text: _say(f"  {text}"),
            give_up=lambda: stop.is_set,
        ) as cluster,
    ):
        demo = _Demonstration(cluster, stop)
        status = demo.run(definition, name, parameters, show)
        if sys.stdin.isatty() and not stop.is_set:
            demo.stay_up(name)
        _say("stopping the cluster")
    return status


class _Demonstration:
    """The steps, on a cluster that runs."""

    def __init__(self, cluster: LocalCluster, stop: StopFlag) -> None:
        self._cluster = cluster
        self._stop = stop

    def run(
        self, definition: Path, name: str, parameters: Sequence[str], show: Sequence[str]
    ) -> int:
        """Apply, run, show. Stops at the first step that fails; returns its status."""
        status = self._type("apply", str(definition), "--yes")
        if status:
            return status
        options = [part for parameter in parameters for part in ("-p", parameter)]
        status = self._type("run", name, *options, "--wait")
        instance = self._newest(name)
        if instance is None:
            return status or _FAILED
        for task in show:
            status = self._type("logs", f"{instance}:{task}") or status
        status = self._type("instance", str(instance)) or status
        _say(f"\nThe API is at {self._cluster.url} (documented at {self._cluster.url}/docs).")
        return status

    def stay_up(self, name: str) -> None:
        """Keep the cluster until Ctrl-C, and say what to try next."""
        shoal = Path(sys.argv[0]).with_name("shoal")
        _say(f"It stays up until Ctrl-C. Try, in another terminal:  {shoal} run {name} --wait")
        while not self._stop.is_set:
            self._cluster.watch()
            time.sleep(_WATCH_S)

    def _type(self, *words: str) -> int:
        """Show a command and run it; a requested stop ends it."""
        print(f"\n$ shoal {shlex.join(words)}", flush=True)
        command = [sys.executable, "-m", "shoal.client.cli", *words]
        command += ["--data", str(self._cluster.data)]
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL)
        while (status := process.poll()) is None:
            if self._stop.is_set:
                # On a terminal Ctrl-C has reached it already; a second signal does no harm.
                process.terminate()
                process.wait()
                return _INTERRUPTED
            self._cluster.watch()
            time.sleep(_WATCH_S)
        return status

    def _newest(self, name: str) -> int | None:
        """Return the id of the newest instance."""
        project, _, workflow = name.partition("/")
        with ShoalClient.connect(self._cluster.data) as client:
            found = next(
                iter(client.pages(client.list_instances, project=project, workflow=workflow)), None
            )
        return None if found is None else found["id"]


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)

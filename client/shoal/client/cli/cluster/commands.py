"""``up``, ``down``, ``doctor``, ``demo`` and the single roles.

Imports are inside the functions: ``shoal --help`` must not load a server's libraries.
"""

import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

_WATCH_S = 0.25

Data = Annotated[
    Path | None,
    typer.Option(help="Data folder; default: $SHOAL_DATA, the nearest .shoal, or ~/.shoal."),
]
Json = Annotated[bool, typer.Option("--json", help="Machine-readable output on standard output.")]
Masters = Annotated[int, typer.Option(min=1, max=32, help="How many masters.")]
Workers = Annotated[int, typer.Option(min=0, max=64, help="How many workers.")]
Slots = Annotated[int | None, typer.Option(min=1, max=1024, help="Tasks at once per worker.")]
Rebind = Annotated[
    bool,
    typer.Option(
        "--rebind",
        help="Bind database and ZooKeeper to each other anew, after a move: stop the rest first.",
    ),
]
Port = Annotated[
    int | None,
    typer.Option(min=1, max=65535, help="Port of the API; default: 8765 or the next free one."),
]


def register(app: typer.Typer) -> None:
    """Add the commands of this module to ``app``."""
    commands: dict[str, list[Callable[..., None]]] = {
        "Cluster": [up, down, doctor, demo],
        "Single roles": [init, master, worker, api, alert_server],
    }
    for panel, functions in commands.items():
        for function in functions:
            name = function.__name__.replace("_", "-")
            app.command(name, rich_help_panel=panel)(function)


def say(text: str) -> None:
    """Tell people on standard error; standard output is for results."""
    print(text, file=sys.stderr, flush=True)


def up(
    masters: Masters = 2,
    workers: Workers = 2,
    slots: Slots = None,
    port: Port = None,
    data: Data = None,
    detach: Annotated[bool, typer.Option("--detach", "-d", help="Run in the background.")] = False,
    rebind: Rebind = False,
    as_json: Json = False,
) -> None:
    """Start a whole cluster on this machine and keep it running until Ctrl-C."""
    from shoal.client.discovery import data_folder

    folder = data_folder(data)
    if detach:
        from shoal.client.local.background import start_detached

        arguments = ["--masters", str(masters), "--workers", str(workers)]
        arguments += ["--slots", str(slots)] if slots else []
        arguments += ["--port", str(port)] if port else []
        arguments += ["--rebind"] if rebind else []
        state = start_detached(folder, arguments)
        _print_up(state.api, folder, as_json)
        _tell_other_place(folder, data)
        return
    from shoal.client.local.cluster import LocalCluster
    from shoal.client.local.process import configure_logging, stop_signals

    configure_logging("warning")
    started = time.monotonic()
    with (
        stop_signals() as stop,
        LocalCluster(
            folder,
            masters=masters,
            workers=workers,
            slots=slots,
            api_port=port,
            progress=say,
            give_up=lambda: stop.is_set,
            rebind=rebind,
        ) as cluster,
    ):
        say(f"ready in {time.monotonic() - started:.1f} s; data in {folder}; Ctrl-C stops it")
        _print_up(cluster.url, folder, as_json)
        say("`shoal ui` opens the web UI, signed in")
        _tell_other_place(folder, data)
        while not stop.is_set:
            cluster.watch()
            time.sleep(_WATCH_S)
        say("stopping: running tasks have 30 s to finish (Ctrl-C again ends them at once)")
    say("stopped")


def _print_up(url: str, folder: Path, as_json: bool) -> None:
    if as_json:
        print(json.dumps({"api": url, "data": str(folder)}), flush=True)
    else:
        print(url, flush=True)


def _tell_other_place(folder: Path, data: Path | None) -> None:
    """Say so if commands like this one speak to another cluster than the one that is up."""
    from shoal.client.discovery import find_api
    from shoal.client.errors import NoCluster

    try:
        other = find_api(data)
    except NoCluster:
        return  # the next command says what is wrong
    if other.data != folder:
        say(f"commands without --data speak to {other.url}: see `shoal whoami`")


def down(data: Data = None, as_json: Json = False) -> None:
    """Stop the cluster that `shoal up` started; running tasks have 30 s to finish."""
    from shoal.client.discovery import data_folder
    from shoal.client.local.background import stop_detached

    folder = data_folder(data)
    stopped = stop_detached(folder)
    if as_json:
        print(json.dumps({"stopped": stopped, "data": str(folder)}))
    else:
        say("stopped" if stopped else f"no cluster is running with the data folder {folder}")


def doctor(data: Data = None, as_json: Json = False) -> None:
    """Check Python, Java, ports, ZooKeeper, database and disk, and say what to do."""
    from dataclasses import asdict

    from rich.console import Console

    from shoal.client.discovery import data_folder
    from shoal.client.local.doctor import CheckVerdict, examine

    marks = {
        CheckVerdict.OK: "[green]✓[/]",
        CheckVerdict.WARNING: "[yellow]![/]",
        CheckVerdict.FAILED: "[red]✗[/]",
    }
    console = Console(stderr=as_json, highlight=False)
    findings = []
    for finding in examine(data_folder(data)):
        findings.append(finding)
        if not as_json:
            console.print(f"{marks[finding.verdict]} {finding.check:<12} ", end="")
            console.print(finding.found, markup=False, soft_wrap=True)
            if finding.advice:
                console.print(f"  {'':<12} → {finding.advice}", markup=False, soft_wrap=True)
    if as_json:
        print(json.dumps([asdict(f) for f in findings], indent=2))
    if any(f.verdict is CheckVerdict.FAILED for f in findings):
        raise typer.Exit(1)


def demo(
    definition: Annotated[
        Path | None,
        typer.Argument(help="Workflow file to apply and run; default: an example of three tasks."),
    ] = None,
    parameters: Annotated[list[str] | None, typer.Option("-p", metavar="K=V")] = None,
    show: Annotated[
        list[str] | None, typer.Option(metavar="TASK", help="Print this task's log at the end.")
    ] = None,
    masters: Masters = 2,
    workers: Workers = 2,
    port: Port = None,
    data: Data = None,
) -> None:
    """Start a cluster, apply a workflow file, run it, show the result; stay up on a terminal."""
    from shoal.client.cli.cluster.demonstration import EXAMPLE, REPORT, demonstrate
    from shoal.client.discovery import data_folder
    from shoal.client.local.process import configure_logging

    configure_logging("warning")

    status = demonstrate(
        data_folder(data),
        definition or EXAMPLE,
        parameters or [],
        show or ([REPORT] if definition is None else []),
        masters=masters,
        workers=workers,
        port=port,
    )
    raise typer.Exit(status)


def init(data: Data = None) -> None:
    """Make token, keys and TLS identity of a data folder, for processes started one by one."""
    from shoal.client.discovery import data_folder
    from shoal.client.local.data_folder import ensure_identity, ensure_token, make_data_folder
    from shoal.runtime.settings import ClusterSettings, load_settings
    from shoal.runtime.vault import create_key

    folder = data_folder(data)
    make_data_folder(folder)
    ensure_token(folder)
    ensure_identity(folder / "tls")
    create_key(load_settings(ClusterSettings, "cluster", folder).secrets_key_file)
    say(f"token, secrets.key and tls/ are in {folder}; copy it to every machine of the cluster")


def master(
    port: Annotated[int | None, typer.Option(min=0, max=65535, help="gRPC port; 0: free.")] = None,
    rebind: Rebind = False,
    data: Data = None,
) -> None:
    """Run one master in the foreground."""
    if rebind:
        os.environ["SHOAL_REBIND"] = "true"
    _run("master", data, port=port)


def worker(
    group: Annotated[str | None, typer.Option(help="Worker group to serve.")] = None,
    slots: Slots = None,
    name: Annotated[str | None, typer.Option(help="Name of this worker; default: host.")] = None,
    data: Data = None,
) -> None:
    """Run one worker in the foreground."""
    _run("worker", data, group=group, slots=slots, name=name)


def api(port: Port = None, data: Data = None) -> None:
    """Run the API server in the foreground."""
    _run("api", data, port=port)


def alert_server(data: Data = None) -> None:
    """Run one alert server in the foreground."""
    _run("alert", data)


def _run(role: str, data: Path | None, **overrides: Any) -> None:
    from shoal.client.discovery import data_folder
    from shoal.client.local.roles import run_role

    status = run_role(role, data_folder(data), overrides)
    sys.stdout.flush()
    sys.stderr.flush()
    # Thread pools of libraries must not hold up the end of a role that has ended in order.
    os._exit(status)

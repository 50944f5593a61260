"""The program with all its commands.

A command costs what it imports, so the module of a command is imported when the command, or the
help that lists all of them, is asked for.
"""

from collections.abc import Callable, Iterator, MutableMapping
from functools import cache
from importlib import import_module
from types import MappingProxyType
from typing import Annotated, Any

import typer
from typer.core import TyperGroup
from typer.main import get_command, get_group

from shoal.client.cli.exits import EPILOG

#: The commands and groups that each module registers; help lists them in this order.
COMMANDS = MappingProxyType(
    {
        "workflows.apply": ("apply",),
        "workflows.trial": ("test",),
        "workflows.show": ("workflows", "workflow", "task-types"),
        "authoring.drafts": ("draft",),
        "authoring.versions": ("versions", "diff", "restore"),
        "authoring.lifecycle": ("copy", "rename", "archive", "unarchive", "delete"),
        "authoring.dependencies": ("dependencies",),
        "authoring.exchange": ("export", "import"),
        "workflows.schedules": ("schedule",),
        "workflows.calendars": ("calendar",),
        "workflows.concurrency": ("concurrency",),
        "workflows.parameters": ("parameter",),
        "workflows.secrets": ("secret",),
        "workflows.data_sources": ("data-source",),
        "workflows.resources": ("resource",),
        "runs.start": ("run",),
        "runs.request": (
            "pause",
            "resume",
            "stop",
            "recover",
            "rerun",
            "rerun-tasks",
            "kill",
            "force",
            "label",
        ),
        "runs.show": ("instances", "instance"),
        "runs.bulk": ("bulk",),
        "runs.comparison": ("compare", "grep", "rendered"),
        "runs.why": ("task", "why"),
        "alerts.alerts": ("alerts", "alert"),
        "views.attempts": ("attempts",),
        "views.timeline": ("timeline",),
        "views.today": ("today",),
        "views.grid": ("grid", "days"),
        "views.history": ("history",),
        "views.simulate": ("simulate",),
        "backfills.start": ("backfill",),
        "backfills.show": ("backfills",),
        "runs.logs": ("logs",),
        "cluster.status": ("status",),
        "cluster.queue": ("queue", "takeovers"),
        "cluster.environments": ("environment",),
        "cluster.quarantine": ("quarantine",),
        "cluster.purges": ("purge",),
        "cluster.rotation": ("secrets",),
        "insight.report": ("insight",),
        "cluster.commands": (
            "up",
            "down",
            "doctor",
            "demo",
            "init",
            "master",
            "worker",
            "api",
            "alert-server",
        ),
        "access.ui": ("ui",),
        "access.sign_in": ("login", "logout", "passwd"),
        "access.whoami": ("whoami",),
        "access.tokens": ("token",),
        "access.sessions": ("session",),
        "access.grants": ("grant",),
        "access.members": ("member",),
        "access.service_accounts": ("service-account",),
        "access.users": ("user",),
        "access.groups": ("group",),
        "access.audit": ("audit",),
    }
)


@cache
def program() -> Callable[..., Any]:
    """Return the program."""
    app = _app(cls=_Program)
    return get_command(app)


@cache
def commands_of(module: str) -> MutableMapping[str, Any]:
    """Import a module of commands; return what it registers, by name.

    Once: the module's own groups would grow each time.
    """
    app = _app()
    import_module(f"{__package__}.{module}").register(app)
    return get_group(app).commands


class _Program(TyperGroup):
    """The group of all commands, each imported when it is needed."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.commands = _Commands()

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names of all commands, of which none is imported."""
        return list(self.commands)


class _Commands(MutableMapping[str, Any]):
    """The commands by name, each imported when it is looked up."""

    def __init__(self) -> None:
        self._modules = {name: module for module, names in COMMANDS.items() for name in names}

    def __getitem__(self, name: str) -> Any:
        return commands_of(self._modules[name])[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._modules)

    def __len__(self) -> int:
        return len(self._modules)

    def __setitem__(self, name: str, command: Any) -> None:
        raise TypeError("commands are in the table of this module")

    def __delitem__(self, name: str) -> None:
        raise TypeError("commands are in the table of this module")


def _app(cls: type[TyperGroup] = TyperGroup) -> typer.Typer:
    app = typer.Typer(
        name="shoal",
        cls=cls,
        epilog=EPILOG,
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
        rich_markup_mode="rich",
    )
    app.callback()(_shoal)
    return app


def _version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        print(f"shoal {version('shoal')}")
        raise typer.Exit


def _shoal(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Shoal schedules DAG workflows over a cluster of equal masters and workers.

    Start with `shoal up`, then `shoal apply FILE` and `shoal run NAME --wait`.
    """

"""Options of ``shoal backfill``: which dates, how they run, and what of the workflow runs."""

from typing import Annotated, Literal

import typer

# -- which dates ---------------------------------------------------------------------------

First = Annotated[
    str | None,
    typer.Option(
        "--from",
        metavar="DATE",
        help="First date, such as 2026-01-01 or 2026-01-01T06:00; without an offset in the "
        "workflow's time zone.",
    ),
]
Last = Annotated[str | None, typer.Option("--to", metavar="DATE", help="Last date, included.")]
Dates = Annotated[
    list[str] | None,
    typer.Option("--date", metavar="DATE", help="Exactly this date; repeatable."),
]
By = Annotated[
    Literal["schedule", "day"] | None,
    typer.Option(help="The fire times, or the midnights. Default: by schedule if it has one."),
]
Missing = Annotated[bool, typer.Option("--missing", help="Dates that never ran.")]
Failed = Annotated[
    bool, typer.Option("--failed", help="Dates that ran, and not once with success.")
]
Reprocess = Annotated[
    Literal["none", "failed", "all"] | None,
    typer.Option(help="Which dates that ran before run again. Default: none."),
]

# -- how they run --------------------------------------------------------------------------

Parallel = Annotated[
    int, typer.Option(min=1, max=500, metavar="N", help="How many dates at a time.")
]
Descending = Annotated[bool, typer.Option("--descending", help="The newest date first.")]
OnFailure = Annotated[
    str | None,
    typer.Option(
        metavar="stop|continue|N",
        help="After how many failures nothing more starts. Default: stop, that is after the "
        "first, for one at a time; else continue.",
    ),
]
Priority = Annotated[
    str | None, typer.Option(metavar="LEVEL", help="HIGHEST to LOWEST. Default: LOW.")
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Only show the plan, start nothing.")]
Wait = Annotated[
    bool, typer.Option("--wait", "-w", help="Follow it to its end; exit 0 if it succeeds.")
]

# -- what runs -----------------------------------------------------------------------------

Dependents = Annotated[
    Literal["none", "direct", "all"] | None,
    typer.Option(help="Also the workflows whose DEPENDENT tasks look for this one."),
]
Version = Annotated[int | None, typer.Option(min=1, help="Default: the newest when a date starts.")]


def check_dates(
    first: str | None,
    last: str | None,
    dates: list[str] | None,
    missing: bool,
    failed: bool,
    reprocess: str | None,
) -> None:
    """Refuse at once what cannot go together. Raises BadParameter."""
    if bool(dates) == bool(first or last):
        raise typer.BadParameter("say which dates: either --from and --to, or --date")
    if not dates and not (first and last):
        raise typer.BadParameter("--from and --to go together")
    if missing and failed:
        raise typer.BadParameter("--missing and --failed exclude each other")
    if reprocess and (missing or failed):
        raise typer.BadParameter("--reprocess does not go with --missing and --failed")


def parse_on_failure(text: str | None) -> Literal["stop", "continue"] | int | None:
    """Return what the request says about failures. Raises BadParameter."""
    words: tuple[Literal["stop", "continue"], ...] = ("stop", "continue")
    if text is None or text in words:
        return next((word for word in words if word == text), None)
    if text.isdecimal() and int(text) > 0:
        return int(text)
    raise typer.BadParameter(
        f"{text!r} is none of stop, continue and a number of failures", param_hint="--on-failure"
    )

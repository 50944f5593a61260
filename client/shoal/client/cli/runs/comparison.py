"""``shoal compare``, ``shoal grep`` and ``shoal rendered``: look closely at runs."""

from typing import Annotated

import typer

from shoal.client.cli.terminal.options import Data, InstanceId, Json


def register(app: typer.Typer) -> None:
    """Add the commands of this module to ``app``."""
    for command in (compare, grep, rendered):
        app.command(rich_help_panel="Runs")(command)


def compare(
    instance_id: InstanceId,
    other_id: Annotated[int, typer.Argument(metavar="OTHER", min=1, help="Another instance.")],
    data: Data = None,
    as_json: Json = False,
) -> None:
    """Show how another run differs from one: parameters, labels, states and times of tasks."""
    from shoal.client.cli.terminal.output import out, print_json, say
    from shoal.client.cli.terminal.tables import TextTable
    from shoal.client.rest.client import ShoalClient

    with ShoalClient.connect(data) as client:
        found = client.compare_instances(instance_id, other_id)
    if as_json:
        print_json(found)
        return
    one, other = found["one"], found["other"]
    say(
        f"instance {one['instance_id']} v{one['version']} {one['state']}, "
        f"instance {other['instance_id']} v{other['version']} {other['state']}"
    )
    for kind, changes in (("parameter", found["parameters"]), ("label", found["labels"])):
        for change in changes:
            say(f"{kind} {change['name']}: {change['one']} -> {change['other']}")
    shown = TextTable(["task", str(one["instance_id"]), str(other["instance_id"]), "longer>"])
    for task in found["tasks"]:
        slower = task["slower_s"]
        shown.add(
            task["task"],
            task["one"]["state"] if task["one"] else "-",
            task["other"]["state"] if task["other"] else "-",
            "" if slower is None else f"{slower:+.1f} s",
        )
    out().print(shown.table(out().width))


def grep(
    pattern: Annotated[
        str, typer.Argument(metavar="TEXT", help="A text, or with -e a pattern, of a line.")
    ],
    instance_id: InstanceId,
    regex: Annotated[
        bool, typer.Option("--regex", "-e", help="A regular expression, without look-around.")
    ] = False,
    ignore_case: Annotated[bool, typer.Option("--ignore-case", "-i", help="In any case.")] = False,
    context: Annotated[
        int, typer.Option("--context", "-C", min=0, max=20, help="Lines around each.")
    ] = 0,
    every: Annotated[
        bool, typer.Option("--all", "-a", help="In the logs of earlier attempts as well.")
    ] = False,
    data: Data = None,
    as_json: Json = False,
) -> None:
    """Search the logs of all tasks of a run."""
    from shoal.client.cli.terminal.appearance import harmless
    from shoal.client.cli.terminal.output import print_json, say
    from shoal.client.rest.client import ShoalClient

    with ShoalClient.connect(data) as client:
        hits = client.pages(
            client.search_logs,
            instance_id,
            text=None if regex else pattern,
            regex=pattern if regex else None,
            ignore_case=ignore_case,
            context=context,
            every=every,
        )
        if as_json:
            print_json(list(hits))
            return
        for task in hits:
            where = f"{task['task']}#{task['attempt']}"
            if task["problem"]:
                say(f"{where}: {task['problem']}")
            for hit in task["hits"]:
                for line in hit["before"]:
                    print(f"{where}- {harmless(line)}")
                print(f"{where}: {harmless(hit['line'])}")
                for line in hit["after"]:
                    print(f"{where}- {harmless(line)}")


def rendered(
    task_instance_id: Annotated[
        int, typer.Argument(metavar="ID", min=1, help="Id of a task instance.")
    ],
    data: Data = None,
    as_json: Json = False,
) -> None:
    """Show what an attempt gets: its params and parameters as rendered, secrets masked."""
    import json

    from shoal.client.cli.terminal.appearance import harmless
    from shoal.client.cli.terminal.output import print_json, say
    from shoal.client.rest.client import ShoalClient

    with ShoalClient.connect(data) as client:
        found = client.get_rendered_attempt(task_instance_id)
    if as_json:
        print_json(found)
        return
    if found["problem"]:
        say(found["problem"])
    for name, value in found["params"].items():
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        print(harmless(f"{name}: {text}"))
    for name, text in sorted(found["parameters"].items()):
        print(harmless(f"${{{name}}} = {text}"))

"""``shoal run --preview``: the run that a start would make."""

import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from shoal.client.rest.runs.types import StartPreviewJson


def show_preview(found: "StartPreviewJson", as_json: bool) -> None:
    """Show which tasks would run, in which order, and what each would get."""
    from rich.text import Text

    from shoal.client.cli.runs.graph import draw
    from shoal.client.cli.terminal.appearance import clock
    from shoal.client.cli.terminal.output import out, print_json, say

    if as_json:
        print_json(found)
        return
    name = f"{found['project']}/{found['workflow']}"
    time = clock(found["logical_time"], datetime.now(UTC), found["timezone"])
    say(f"would run {name} v{found['version']} for {time}, priority {found['priority'].lower()}")
    # A task may have a value of its own; what most of them get is that of the run.
    values = next((one["rendered"]["parameters"] for one in found["tasks"] if one["rendered"]), {})
    for key, text in sorted(found["parameters"].items()):
        out().print(Text.assemble((f"{key} = ", "dim"), values.get(key, text)))
    by_name = {one["task"]: one for one in found["tasks"]}
    for line in draw({one["task"]: one["depends_on"] for one in found["tasks"]}):
        one = by_name[line.task]
        head = Text.assemble((line.branch, "dim"), (line.task, "bold" if one["runs"] else "dim"))
        if not one["runs"]:
            head.append("  does not run: it is not selected, or disabled", "dim")
        else:
            head.append(f"  {one['type']} on {one['worker_group']}", "dim")
        out().print(head)
        shown = one["rendered"]
        if shown is None:
            continue
        indent = " " * (len(line.branch) + 2)
        if shown["problem"]:
            out().print(Text(f"{indent}{shown['problem']}", "red"))
        for key, value in shown["params"].items():
            text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
            for number, part in enumerate(text.splitlines() or [""]):
                label = f"{key}: " if number == 0 else " " * (len(key) + 2)
                out().print(Text.assemble(indent, (label, "dim"), part))

"""The web UI in a real browser, on a real cluster: every page opens and follows, for everybody."""

from shoal.client.local.cluster import LocalCluster
from tests.acceptance.rest import Rest
from tests.acceptance.ui.browser import browse, require_browser

# Mark-up, a script, a link of the terminal to a script, and a title that the terminal would take.
HOSTILE = (
    '<img src=x onerror="document.title=1"><script>document.title=2</script>'
    "\\033]8;;javascript:document.title=3\\033\\\\click\\033]8;;\\033\\\\ \\033]0;title\\007end"
)


def test_every_page_in_a_browser(cluster: LocalCluster, rest: Rest) -> None:
    require_browser()
    tasks = {
        "fetch": {"script": f"for i in 1 2 3; do echo line $i; done; printf '%b\\n' '{HOSTILE}'"},
        "check": {"script": "exit 3"},
    }
    rest.publish("seen", tasks)
    run = rest.start("seen")
    rest.wait_for(run)
    rest.publish("followed", {"long": {"script": "sleep 600"}})
    live = rest.start("followed")
    rest.until(lambda: rest.tasks(live)["long"]["state"], lambda state: state == "RUNNING")
    rest.publish("waits", {"only": {"script": "true", "worker_group": "absent"}})
    waits = rest.start("waits")
    rest.until(lambda: rest.tasks(waits)["only"]["state"], lambda state: state == "QUEUED")
    rest.publish(
        "wide", {f"t{n}": {"depends_on": [f"t{n - 20}"] if n > 19 else []} for n in range(300)}
    )
    needs = {"type": "DEPENDENT", "params": {"when": {"workflow": "seen", "date": "today"}}}
    body = {"name": "after", "tasks": [{"name": "wait", **needs}]}
    rest.put("/projects/default/workflows/after", body)
    what = rest.instance(run)
    there = {"run": run, "live": live, "project": what["project"], "workflow": "seen"}
    facts = browse(cluster, "pages.mjs", there, link=True)
    assert facts == {
        "hashAfterSignIn": "",
        "sawRunning": True,
        "touched": ["long"],
        "stopped": True,
        "inert": {"elements": 0, "links": [], "shown": True, "title": True},
        "mounted": 0,
        "painted": True,
        "clicked": True,
        "near": True,
        "waiting": ["seen", "after"],
        "drawn": 1,
        "ran": "FAILED",
        "chinese": "今日",
        "said": "1 个任务失败",
    }

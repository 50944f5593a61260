"""Pages that are open while the network, the API or a master go away; and pages of a reader."""

from pathlib import Path

from shoal.client.local.cluster import LocalCluster
from shoal.client.local.zookeeper import free_port
from tests.acceptance.faults.masters import watched
from tests.acceptance.rest import Rest
from tests.acceptance.ui.browser import browse, require_browser
from tests.support.people import add_reader, add_user

_NEED = "You need the role {} in default. Ask a project owner."


def test_what_is_watched_survives_what_goes_away(tmp_path: Path) -> None:
    require_browser()
    with LocalCluster(tmp_path / "data", slots=8, api_port=free_port()) as cluster:
        rest = Rest(cluster.url, cluster.token)
        gates = [str(tmp_path / f"gate-{n}") for n in range(3)]
        runs = []
        for n, gate in enumerate(gates):
            rest.publish(
                f"gated{n}", {"wait": {"script": f"until test -e '{gate}'; do sleep 0.1; done"}}
            )
            runs.append(rest.start(f"gated{n}"))
        password = add_user(rest.http, "uma", is_admin=True)
        add_reader(rest.http, "rosa")
        there = {
            "pids": cluster.pids(),
            "gates": gates,
            "runs": runs,
            "admin": "uma",
            "reader": "rosa",
            "password": password,
        }
        with watched(cluster):
            facts = browse(cluster, "robust.mjs", there)
        rest.close()
    chinese = facts.pop("chinese")
    assert facts == {
        "stale": True,
        "keeps": 1,
        "afterApi": True,
        "afterMaster": 1,
        "reader": _NEED.format("runner, writer or owner"),
        "parameters": _NEED.format("writer or owner"),
        "bulk": _NEED.format("runner, writer or owner"),
        "nav": 0,
        "sent": [],
    }
    assert "owner" in chinese
    assert "需要" in chinese

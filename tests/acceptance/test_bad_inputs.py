"""What people get wrong in tasks: a clear reason, the right state, and nothing left running.

The page docs/tasks/mistakes.md is made from what happens here; after a change of a message run
``SHOAL_UPDATE_DOCS=1 .venv/bin/pytest tests/acceptance/test_bad_inputs.py``.
"""

import os
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import asyncssh
import pytest

from shoal.core.data_sources import DataSource
from tests.acceptance.bad_inputs import REFUSED, RUN, Bad, Happened, page
from tests.acceptance.rest import Rest
from tests.integration.drivers.conftest import postgresql as postgresql
from tests.integration.drivers.servers import Served, free_port
from tests.support.servers import sshd
from tests.support.waiting import DEADLINE_S

PAGE = Path(__file__).parents[2] / "docs" / "tasks" / "mistakes.md"
_BEGIN, _END = "<!-- mistakes -->\n", "\n<!-- /mistakes -->"

pytestmark = pytest.mark.timeout(600)


@pytest.fixture
def sources(rest: Rest, postgresql: Served, tmp_path: Path) -> Iterator[None]:
    """Data sources, right and wrong, of the project."""
    postgresql.asked("DROP TABLE IF EXISTS orders")
    postgresql.asked("CREATE TABLE orders (id integer, amount integer)")
    postgresql.asked("INSERT INTO orders VALUES (1, 5), (2, -3)")
    postgresql.asked("GRANT SELECT ON orders TO etl")
    _put(rest, "warehouse", postgresql.source)
    _put(rest, "closed", postgresql.sourced(port=free_port()))
    _put(rest, "refused", postgresql.sourced(password="wrong one"))
    closed = DataSource("closed_flink", "flink", host="127.0.0.1", port=free_port())
    _put(rest, "closed_flink", closed)
    with sshd.served(tmp_path) as host:
        other = asyncssh.generate_private_key("ssh-ed25519")
        shown = " ".join(other.export_public_key().decode().split()[:2])
        _put(rest, "farm", host.source)
        _put(rest, "closed_host", host.source, port=free_port())
        _put(rest, "other_host", host.source, options={"host_key": shown})
        _put(rest, "refused_host", host.source, password=other.export_private_key().decode())
        yield


def _put(rest: Rest, name: str, source: DataSource, **changed: Any) -> None:
    fields = {**asdict(source), "kind": source.kind, **changed}
    own = ("name", "version")
    body = {key: value for key, value in fields.items() if key not in own and value != ""}
    rest.put(f"/projects/default/data-sources/{name}", body)


def _refused(rest: Rest, bad: Bad) -> Happened:
    body = {"name": "mistake", "tasks": [bad.task(0)]}
    answer = rest.http.put("/projects/default/workflows/mistake", json=body)
    assert answer.status_code == 422, f"{bad}: {answer.text}"
    problems = answer.json()["errors"]
    said = (f"{one['field'].removeprefix('tasks[0].')}: {one['message']}" for one in problems)
    return Happened("", 0, "; ".join(said))


def _run(rest: Rest) -> list[Happened]:
    tasks = [bad.task(number) for number, bad in enumerate(RUN)]
    body = {"name": "mistakes", "tasks": tasks}
    rest.put("/projects/default/workflows/mistakes", body)
    instance = rest.start("mistakes")
    ended = rest.wait_for(instance, timeout_s=4 * DEADLINE_S)
    assert ended["state"] == "FAILED"
    newest = rest.tasks(instance)
    return [
        Happened(one["state"], one["attempt"], one["reason"])
        for one in (newest[f"t{number}"] for number in range(len(RUN)))
    ]


@pytest.fixture
def environments(rest: Rest) -> None:
    """Environments that cannot be used."""
    bodies: dict[str, dict[str, object]] = {
        "no_pythons": {"python": "/opt/venvs/gone"},
        "of_gpu": {"worker_groups": ["gpu"]},
        "bad_setup": {"setup": "echo no licence left; exit 3"},
    }
    for name, body in bodies.items():
        rest.put(f"/environments/{name}", body)


@pytest.mark.usefixtures("sources", "environments")
def test_each_mistake_has_a_reason_and_the_page_shows_it(rest: Rest, postgresql: Served) -> None:
    refused = [(bad, _refused(rest, bad)) for bad in REFUSED]
    run = list(zip(RUN, _run(rest), strict=True))
    for bad, one in run:
        assert one.state == "FAILED", bad
        assert one.reason, bad
        assert "Traceback" not in one.reason, bad
    busy = "SELECT query FROM pg_stat_activity WHERE usename = 'etl' AND state <> 'idle'"
    assert postgresql.asked(busy) == []
    tables = page(refused, run)
    text = PAGE.read_text(encoding="utf-8")
    before, rest_of = text.split(_BEGIN)
    _, after = rest_of.split(_END)
    if os.environ.get("SHOAL_UPDATE_DOCS"):
        PAGE.write_text(f"{before}{_BEGIN}{tables}{_END}{after}", encoding="utf-8")
    assert PAGE.read_text(encoding="utf-8") == f"{before}{_BEGIN}{tables}{_END}{after}"

"""What one task gives reaches the next, and what is secret reaches no log, whatever dies."""

import os
import signal
from contextlib import closing
from pathlib import Path

import pytest

from shoal.client.local.cluster import LocalCluster
from shoal.client.local.zookeeper import free_port
from tests.acceptance.faults.masters import partition_of_instance, pid_of, shared_out
from tests.acceptance.rest import Rest
from tests.support.waiting import SERVICE_SESSION_S

NOTE = "first 'line'\nsecond \"$(touch ran)\" ${x} $[yyyy] ü"
SECRET = 'hush\'s "word" 42'


def test_outputs_and_secrets_reach_the_next_task_though_the_master_is_killed_between(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHOAL_SESSION_TIMEOUT_S", str(SERVICE_SESSION_S))
    got = tmp_path / "got"
    with (
        LocalCluster(tmp_path / "data", workers=1, slots=2, api_port=free_port()) as running,
        closing(Rest(running.url, running.token)) as rest,
    ):
        shared_out(rest, [64, 64])
        rest.put("/projects/default/parameters/place", {"value": "/data/$[yyyy]"})
        rest.put("/projects/default/secrets/db", {"value": SECRET})
        rest.publish(
            "values",
            {
                "give": {
                    "script": 'printf \'{"note": %s}\\n\' "$quoted" > "$SHOAL_OUTPUT"\n'
                    "echo '${setValue(rows=7)}'\n"
                    'echo "the word is $SHOAL_SECRET_db."',
                    "outputs_from_log": True,
                },
                "wait": {
                    "script": f"until [ -e '{tmp_path}/go' ]; do sleep 0.05; done",
                    "depends_on": ["give"],
                },
                "take": {
                    "params": {
                        "script": f'printf "%s\\0" "$rows" "$note" "$password" "$@" > \'{got}\'\n'
                        'echo "password $password"',
                        "arguments": ["${file}", "${note}"],
                    },
                    "parameters": {
                        "file": "${place}/${rows}.csv",
                        "password": "${secret.db}",
                    },
                    "depends_on": ["wait"],
                },
            },
            parameters={"quoted": ""},
        )
        quoted = '"first \'line\'\\nsecond \\"$(touch ran)\\" ${x} $[yyyy] ü"'
        instance_id = rest.start(
            "values", parameters={"quoted": quoted}, logical_time="2024-03-01T12:00:00Z"
        )
        rest.until(lambda: rest.tasks(instance_id)["wait"]["state"], lambda s: s == "RUNNING")
        partition = partition_of_instance(running, instance_id)
        masters = rest.get("/cluster")["masters"]
        owner = next(pid_of(one) for one in masters if partition in one["partitions"])
        os.kill(owner, signal.SIGKILL)
        (tmp_path / "go").touch()
        assert rest.wait_for(instance_id)["state"] == "SUCCEEDED"
        tasks = rest.tasks(instance_id)
        given = rest.get(f"/task-instances/{tasks['give']['id']}")["outputs"]
        logs = {name: rest.log(task["id"]) for name, task in tasks.items()}
    assert given == {"note": NOTE, "rows": "7"}
    file = "/data/2024/7.csv"
    assert got.read_text().split("\0") == ["7", NOTE, SECRET, file, NOTE, ""]
    assert logs["give"] == "${setValue(rows=7)}\nthe word is ***.\n"
    assert logs["take"] == "password ***\n"
    for path in (tmp_path / "data").rglob("*"):
        if path.is_file() and path.name != "got":
            assert SECRET.encode() not in path.read_bytes(), path

"""S17: a secret and a password go through tasks of several types, and are found nowhere after it.

Looked through: every file of the data folder (database, logs, work folders, spool, ZooKeeper's
data), all znodes, the answers of all GET routes, command lines and environments of processes.
"""

import base64
import json
import os
import re
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote

from kazoo.client import KazooClient
from kazoo.exceptions import NoAuthError, NoNodeError

from shoal.client.local.cluster import LocalCluster
from shoal.client.local.state import find_zookeeper_credential, read_state
from shoal.client.local.zookeeper import free_port
from tests.acceptance.rest import Rest

SECRET = "canary/of a secret+Qx7"
PASSWORD = "canary/of-a password+Zk4"
PRINTS = """
import os, base64, urllib.parse
value = os.environ["SHOAL_SECRET_canary"]
print(value, value.encode().hex(), urllib.parse.quote(value), base64.b64encode(value.encode()))
"""


def needles() -> dict[bytes, str]:
    """Return what is searched for, by bytes: raw, in hexadecimal digits, in URLs, in base64."""
    found: dict[bytes, str] = {}
    for value in (SECRET, PASSWORD):
        raw = value.encode()
        found |= {raw: "raw", raw.hex().encode(): "hex", quote(value, safe="").encode(): "url"}
        for shift in range(3):  # wherever it begins in a longer text; without its uncertain ends
            encoded = base64.b64encode(b"\0" * shift + raw)
            found[encoded[4 if shift else 0 : -4]] = f"base64+{shift}"
    return found


NEEDLES = needles()


def hits(where: str, content: bytes) -> list[str]:
    return [f"{where}: {how}" for needle, how in NEEDLES.items() if needle in content]


def _task(name: str, kind: str, params: dict[str, Any]) -> dict[str, Any]:
    return {"name": name, "type": kind, "params": params}


def tasks(gate: Path) -> list[dict[str, Any]]:
    wait = f'until [ -e "{gate}" ]; do sleep 0.1; done'
    echo = 'echo "$SHOAL_SECRET_canary"; echo "$SHOAL_SECRET_canary" | base64 -w0'
    headers = {"Authorization": "Bearer ${secret.canary}"}
    request = {"url": f"http://127.0.0.1:{free_port()}/x", "method": "GET", "headers": headers}
    return [
        _task("shell", "SHELL", {"script": f"{echo}; {wait}"}),
        _task("shell-fails", "SHELL", {"script": f"set -x; {echo} >&2; exit 3"}),
        _task("python", "PYTHON", {"script": PRINTS}),
        _task("python-fails", "PYTHON", {"script": f"{PRINTS}\nraise RuntimeError(value)"}),
        _task("sql-fails", "SQL", {"data_source": "closed", "sql": "SELECT 1"}),
        _task("http-fails", "HTTP", request),
    ]


def test_secret_and_password_are_found_nowhere(tmp_path: Path) -> None:
    assert hits("", b"x" + base64.b64encode(b"ab" + SECRET.encode() + b"cd")), "it can be found"
    data, gate = tmp_path / "data", tmp_path / "gate"
    with (
        LocalCluster(data, masters=1, workers=1, slots=8, api_port=free_port()) as running,
        closing(Rest(running.url, running.token)) as rest,
    ):
        answer = rest.http.put("/projects/default/secrets/canary", json={"value": SECRET})
        assert answer.status_code == 201, answer.text
        source = {"kind": "postgresql", "host": "127.0.0.1", "port": free_port(), "database": "d"}
        source |= {"user": "u", "password": PASSWORD}
        answer = rest.http.put("/projects/default/data-sources/closed", json=source)
        assert answer.status_code == 201, answer.text
        body = {"tasks": tasks(gate)}
        answer = rest.http.put("/projects/default/workflows/canaries", json=body)
        assert answer.status_code == 201, answer.text
        instance_id = rest.start("canaries")
        rest.until(
            lambda: rest.tasks(instance_id),
            lambda found: (
                all(
                    one["state"] in ("SUCCEEDED", "FAILED") or name == "shell"
                    for name, one in found.items()
                )
                and found["shell"]["state"] == "RUNNING"
            ),
        )
        found = list(_in_processes(running))
        gate.touch()
        rest.wait_for(instance_id)
        ended = rest.tasks(instance_id)
        states = {name: one["state"] for name, one in ended.items()}
        assert states == {
            name: "FAILED" if name.endswith("-fails") else "SUCCEEDED" for name in states
        }
        assert "***" in rest.log(ended["shell"]["id"])
        assert "***" in rest.log(ended["python-fails"]["id"])
        found += _in_answers(rest, instance_id, ended["shell-fails"]["id"])
        found += _in_zookeeper(data)
        for pid in running.pids().values():
            limits = Path(f"/proc/{pid}/limits").read_text()
            assert re.search(r"Max core file size +0 ", limits), "no image of a role is written"
    for file in data.rglob("*"):
        if file.is_file():
            found += hits(str(file.relative_to(data)), file.read_bytes())
    assert found == []


def _in_processes(running: LocalCluster) -> Iterator[str]:
    """Yield hits in command lines of all processes, and in the environments of all but the task."""
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            command = (folder / "cmdline").read_bytes()
            yield from hits(f"command line of {command!r}", command)
            environment = (folder / "environ").read_bytes()
            is_of_task = b"SHOAL_SECRET_canary=" in environment
            if not is_of_task or int(folder.name) in running.pids().values():
                yield from hits(f"environment of {command!r}", environment)
            elif b"shoal" in command and b"script" not in command:
                yield f"the secret is in the environment of {command!r}"


def _in_answers(rest: Rest, instance_id: int, task_instance_id: int) -> list[str]:
    given = {
        "project": "default",
        "instance_id": instance_id,
        "task_instance_id": task_instance_id,
        "command_id": 1,
    }
    names = {"workflows": "canaries", "data-sources": "closed"}
    found, good = [], 0
    for path, methods in rest.get("/openapi.json")["paths"].items():
        parts = path.split("/")
        if "get" not in methods or parts[-1] in ("events", "follow"):
            continue
        values = {**given, "name": next((names[one] for one in parts if one in names), "x")}
        values |= {name: 1 for name in re.findall(r"\{(\w+)\}", path) if name not in values}
        answer = rest.http.get(path.format(**values).removeprefix("/api/v1"), params={"limit": 500})
        if answer.status_code == 422:
            answer = rest.http.get(path.format(**values).removeprefix("/api/v1"))
        good += answer.is_success
        found += hits(path, answer.content)
    assert good > 30
    return found


def _in_zookeeper(data: Path) -> list[str]:
    state = read_state(data)
    assert state is not None
    scheme, _, credential = find_zookeeper_credential(data).partition(":")
    client = KazooClient(state.zookeeper, auth_data=[(scheme, credential)])
    client.start()
    found, paths, seen = [], ["/"], 0
    try:
        while paths:
            path = paths.pop()
            with suppress(NoNodeError, NoAuthError):
                content, _ = client.get(path)
                seen += 1
                found += hits(path, path.encode() + b" " + (content or b""))
                paths += [os.path.join(path, one) for one in client.get_children(path)]
    finally:
        client.stop()
        client.close()
    assert seen > 20, json.dumps(seen)
    return found

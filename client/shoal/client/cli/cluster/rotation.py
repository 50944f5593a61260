"""``shoal secrets``: the keys that encrypt the secrets of all projects, for administrators."""

import time
from typing import TYPE_CHECKING

import typer

from shoal.client.cli.exits import ExitStatus
from shoal.client.cli.terminal.options import Data, Json

if TYPE_CHECKING:
    from collections.abc import Callable

    from shoal.client.rest.client import ShoalClient
    from shoal.client.rest.operations.generated.types import RotationOut

group = typer.Typer(
    name="secrets", no_args_is_help=True, help="The keys that encrypt secrets (`shoal secret`)."
)

_PATIENCE_S = 15.0  # until masters have seen what is new in their files
_POLL_S = 0.5


def register(app: typer.Typer) -> None:
    """Add the commands of this module to ``app``."""
    app.add_typer(group, rich_help_panel="Cluster")


@group.command()
def keys(data: Data = None, as_json: Json = False) -> None:
    """Show which keys there are, by their ids, and which masters have them."""
    from shoal.client.cli.terminal.output import out, print_json, say
    from shoal.client.cli.terminal.tables import TextTable
    from shoal.client.rest.client import ShoalClient

    with ShoalClient.connect(data) as client:
        found = client.get_secrets_keys()
    if as_json:
        print_json(found)
        return
    role: dict[str | None, str] = {found["primary"]: "encrypts", found["next"]: "next"}
    for name, keys in (("old", found["old"]), ("retired", found["retired"])):
        role |= dict.fromkeys(keys, name)
    known = dict.fromkeys([*role, *found["here"], *filter(None, found["used"])])
    shown = TextTable(["key", "is", "values>", "masters>"])
    for key in filter(None, known):
        having = sum(key in there for there in found["masters"].values())
        shown.add(
            key,
            role.get(key, ""),
            str(found["used"].get(key, 0)),
            f"{having} of {len(found['masters'])}",
        )
    out().print(shown.table(out().width))
    if earlier := found["used"].get(""):
        say(f"{earlier} values are from before keys had ids; `shoal secrets rotate` changes that")


@group.command()
def rotate(data: Data = None, as_json: Json = False) -> None:
    """Encrypt all secrets and passwords with a new key, while the cluster works.

    The new key is put into the key file of the API's machine, unless one was put there for it.
    Masters on other machines need it in theirs: the command says which do not have it. Broken off,
    it goes on where it was when it is given again.
    """
    from shoal.client.cli.terminal.output import print_json, say
    from shoal.client.rest.client import ShoalClient

    with ShoalClient.connect(data) as client:
        encrypted, done = _rotated(client, None if as_json else say)
    if as_json:
        print_json({**done, "encrypted": encrypted})
    else:
        _tell(done, encrypted)
    if done["phase"] != "done":
        raise typer.Exit(ExitStatus.FAILED)


def _rotated(
    client: "ShoalClient", say: "Callable[[str], None] | None"
) -> "tuple[int, RotationOut]":
    done = client.rotate_secrets_keys({"begin": True})
    encrypted, deadline_s = done["encrypted"], time.monotonic() + _PATIENCE_S
    while True:
        if say is not None and done["phase"] == "working" and not done["encrypted"]:
            say(done["did"])
        if done["phase"] == "waiting" and time.monotonic() < deadline_s:
            time.sleep(_POLL_S)
        elif done["phase"] != "working":
            return encrypted, done
        done = client.rotate_secrets_keys({"begin": False})
        encrypted += done["encrypted"]


def _tell(done: "RotationOut", encrypted: int) -> None:
    from shoal.client.cli.terminal.output import say

    say(done["did"])
    for name in done["without_key"]:
        say(f"without the key {done['key']}: {name}")
    if done["without_key"]:
        say(
            "copy the line of the new key, the last one, from the key file of the API's machine "
            "into theirs, and give this command again; nothing is encrypted with it until then"
        )
    for name in done["unreadable"]:
        say(f"cannot be decrypted: {name}")
    if done["phase"] == "done":
        say(f"{encrypted} values were encrypted anew; {done['key']} encrypts")
    if done["retired"]:
        say(
            "the old keys are in the file ….retired beside the key file; remove their lines on "
            "other machines, and delete them when no backup needs them"
        )

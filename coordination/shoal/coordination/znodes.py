"""Names as path elements, and where the library's parts have their znodes.

::

    /groups/<name>                   a group: its state, one JSON document (see group/codec.py)
    /groups/<name>/members/<id>      a member's registration (ephemeral, JSON)
    /elections/<name>/…              who leads: see recipes/election.py
    /jobs/<name>/…                   who has which job: see recipes/jobs.py
    /messages/<topic>/…              messages and their consumers: see messages/paths.py
    /quarantine/<number>             what was found where it cannot be: see quarantine.py

Each is made when it is first used. All paths are below the session's chroot.
"""

from functools import lru_cache
from urllib.parse import quote, unquote

GROUPS = "/groups"
ELECTIONS = "/elections"
JOBS = "/jobs"
MESSAGES = "/messages"
QUARANTINE = "/quarantine"


def group(name: str) -> str:
    return f"{GROUPS}/{encode_name(name)}"


def group_members(name: str) -> str:
    return f"{group(name)}/members"


def election(name: str) -> str:
    return f"{ELECTIONS}/{encode_name(name)}"


def jobs(name: str) -> str:
    return f"{JOBS}/{encode_name(name)}"


def messages(topic: str) -> str:
    return f"{MESSAGES}/{encode_name(topic)}"


def member(parent: str, member_id: str) -> str:
    return f"{parent}/{encode_name(member_id)}"


@lru_cache(maxsize=1000)  # the same few names stand in the paths of a million entries
def encode_name(name: str) -> str:
    """Return ``name`` as one path element: any text can name a group or a member.

    Raises ValueError for an empty name, and for one that UTF-8 cannot encode.
    """
    if not name:
        raise ValueError("a name in ZooKeeper cannot be empty")
    if name.strip(".") == "":
        return name.replace(".", "%2E")  # "." and ".." are not allowed as elements
    try:
        return quote(name, safe=" ")
    except UnicodeEncodeError as error:
        raise ValueError(
            f"invalid name in ZooKeeper {name[:100]!r}: character {error.start + 1} is a lone "
            "surrogate; use text that UTF-8 can encode"
        ) from error


def decode_name(element: str) -> str:
    return unquote(element)

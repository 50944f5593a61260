"""The page about users and permissions says what the code gives to each role."""

import os
from collections.abc import Iterator
from pathlib import Path

from shoal.core.access.permissions import OF_PLATFORM, OF_PROJECT, ROLES, Permission

PAGE = Path(__file__).parents[4] / "docs" / "access.md"
MEANINGS = {
    Permission.PROJECT_READ: "see definitions, runs, logs, files and names of secrets",
    Permission.RUN_OPERATE: "start, pause, stop, recover, kill, force, backfill",
    Permission.PROJECT_EDIT: "change workflows, schedules, calendars, concurrency groups, "
    "parameters, resources",
    Permission.CONNECTION_EDIT: "set secrets and data sources, and try these",
    Permission.PROJECT_MANAGE: "give roles, keep service accounts, change the project itself",
    Permission.CLUSTER_READ: "see masters, workers, partitions, queues, sizes: `shoal status`",
    Permission.CLUSTER_OPERATE: "retry quarantined items, and discard those of alert servers and "
    "of the history: `shoal quarantine`",
    Permission.PROJECT_CREATE: "make projects",
    Permission.HISTORY_PURGE: "delete the past: `shoal purge`",
    Permission.ENVIRONMENT_EDIT: "make, change and delete environments: `shoal environment`",
    Permission.RESTRICTION_EDIT: "keep worker groups and environments for some projects: "
    "`shoal grant restrict`",
    Permission.USER_MANAGE: "keep users and groups, their passwords and tokens",
    Permission.AUDIT_READ: "see who did what, in all projects: `shoal audit`",
    Permission.SECRETS_ROTATE: "see and change the keys that encrypt secrets: `shoal secrets`",
}


def roles() -> Iterator[str]:
    yield f"| Permission | | {' | '.join(ROLES)} |"
    yield "| --- " * (2 + len(ROLES)) + "|"
    for permission in Permission:
        if permission in OF_PROJECT:
            held = ("yes" if permission in given else "–" for given in ROLES.values())
            yield f"| `{permission}` | {MEANINGS[permission]} | {' | '.join(held)} |"


def platform() -> Iterator[str]:
    yield "| Permission | |"
    yield "| --- | --- |"
    for permission in Permission:
        if permission in OF_PLATFORM:
            yield f"| `{permission}` | {MEANINGS[permission]} |"


def test_page_is_up_to_date() -> None:
    text = PAGE.read_text(encoding="utf-8")
    for name, lines in (("roles", roles()), ("platform", platform())):
        before, found, rest = text.partition(f"<!-- {name} -->\n")
        _, end, after = rest.partition(f"<!-- /{name} -->")
        assert found
        assert end
        text = before + found + "".join(f"{line}\n" for line in lines) + end + after
    if os.environ.get("SHOAL_UPDATE_DOCS"):
        PAGE.write_text(text, encoding="utf-8")
    assert PAGE.read_text(encoding="utf-8") == text


def test_every_permission_is_explained() -> None:
    assert MEANINGS.keys() == set(Permission) - {Permission.SIGNED_IN}

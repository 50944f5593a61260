"""Resources over REST: files come back as they were, in versions, and nothing leads outside."""

import hashlib
import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from shoal.api.settings import ApiSettings
from shoal.runtime.settings import ClusterSettings
from tests.integration.api.conftest import (
    PREFIX,
    Api,
    fields_of,
    in_process,
    opened,
    problem_of,
)
from tests.support.cases import each_row

pytestmark = pytest.mark.asyncio(loop_scope="module")

SETTINGS = ApiSettings(port=0)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def api(module_cluster: ClusterSettings) -> AsyncIterator[Api]:
    small = module_cluster.model_copy(update={"resource_mb": 2, "resource_project_mb": 3})
    async with opened(small, SETTINGS) as services, in_process(services) as it:
        for project in ("team", "deletes", "large", "lists", "lost", "taken", "bad", "edits"):
            await it.make(project)
        yield it


def path(project: str, name: str = "", what: str = "resources") -> str:
    return f"{PREFIX}/projects/{project}/{what}" + (f"/{name}" if name else "")


def content(project: str, name: str) -> str:
    return path(project, name, "resource-contents")


def objects(cluster: ClusterSettings, project: str) -> list[Path]:
    """The files that the storage holds of a project."""
    return [one for one in Path(cluster.resources).glob(f"*/{project}/**/*") if one.is_file()]


async def put(api: Api, project: str, name: str, text: bytes, status: int = 201) -> None:
    answer = await api.client.put(content(project, name), content=text)
    assert answer.status_code == status, answer.text


async def test_file_comes_back_byte_for_byte_and_in_versions(api: Api) -> None:
    first, second = os.urandom(3000), b""
    answer = await api.client.put(content("team", "etl/a b.bin"), content=first)
    assert answer.status_code == 201
    shown = answer.json()
    assert (shown["path"], shown["version"], shown["size"]) == ("etl/a b.bin", 1, 3000)
    assert shown["sha256"] == hashlib.sha256(first).hexdigest()
    same = await api.client.put(content("team", "etl/a b.bin"), content=first)
    assert (same.status_code, same.json()) == (200, shown)
    await put(api, "team", "etl/a b.bin", second)
    newest = await api.client.get(content("team", "etl/a b.bin"))
    assert (newest.content, newest.headers["shoal-version"]) == (second, "2")
    assert newest.headers["content-disposition"] == "attachment; filename*=UTF-8''a%20b.bin"
    older = await api.client.get(content("team", "etl/a b.bin"), params={"version": 1})
    assert older.content == first
    assert older.headers["etag"] == f'"{shown["sha256"]}"'
    listed = (await api.client.get(path("team", "etl/a b.bin", "resource-versions"))).json()
    assert [one["version"] for one in listed["items"]] == [2, 1]
    assert listed["items"][1]["ended_at"] is not None
    gone = await api.client.get(path("team", "etl/a b.bin"), params={"version": 3})
    assert "resource team/etl/a b.bin@3" in problem_of(gone, 404, "not-found")["detail"]


async def test_lists_come_in_pages_and_by_folder(api: Api) -> None:
    for name in ("etl/b", "etl/a", "other", "etl/deep/c"):
        await put(api, "lists", name, name.encode())
    first = (await api.client.get(path("lists"), params={"limit": 3})).json()
    rest = (await api.client.get(path("lists"), params={"cursor": first["next"]})).json()
    found = [one["path"] for one in first["items"] + rest["items"]]
    assert (sorted(found), rest["next"]) == (["etl/a", "etl/b", "etl/deep/c", "other"], None)
    for folder in ("etl", "etl/"):
        below = (await api.client.get(path("lists"), params={"folder": folder})).json()
        assert sorted(one["path"] for one in below["items"]) == ["etl/a", "etl/b", "etl/deep/c"]
    problem_of(await api.client.get(path("nobody")), 404, "not-found")


async def test_deleted_file_is_hidden_and_its_versions_stay_for_a_while(api: Api) -> None:
    await put(api, "deletes", "etl/a", b"one")
    await put(api, "deletes", "etl/b", b"two")
    answer = await api.client.delete(path("deletes", "etl/a"))
    assert answer.json() == {"files": 1}
    problem_of(await api.client.get(path("deletes", "etl/a")), 404, "not-found")
    problem_of(await api.client.get(content("deletes", "etl/a")), 404, "not-found")
    problem_of(await api.client.delete(path("deletes", "etl/a")), 404, "not-found")
    kept = await api.client.get(content("deletes", "etl/a"), params={"version": 1})
    assert kept.content == b"one"
    problem_of(await api.client.delete(path("deletes", "etl")), 404, "not-found")
    assert (await api.client.delete(path("deletes", "etl") + "/")).json() == {"files": 1}
    assert (await api.client.get(path("deletes"))).json()["items"] == []


@each_row(
    "name",
    [
        "%2e%2e/x",
        "a/%2e%2e/%2e%2e/x",
        "%2e/x",
        "a//x",
        "%2Fetc/passwd",
        "a%00b",
        "a%0Ab",
        "a%5C..%5Cb",
        "a@1",
        "$%7Bx%7D",
        "-rf",
        "a/%20b",
        "C:x",
        "x" * 201,
        "x/" * 20 + "x",
        "e%CC%81",
    ],
)
async def test_path_that_leads_outside_or_astray_is_refused(
    api: Api, module_cluster: ClusterSettings, name: str
) -> None:
    answer = await api.client.put(content("bad", name), content=b"one")
    assert answer.status_code in (404, 422), answer.text
    if answer.status_code == 422:
        assert "path" in fields_of(answer.json())
    assert objects(module_cluster, "bad") == []
    listed = await api.client.get(path("bad"))
    assert listed.status_code == 404 or listed.json()["items"] == []


async def test_file_that_is_too_large_is_refused_and_leaves_nothing(
    api: Api, module_cluster: ClusterSettings
) -> None:
    large = bytes(2 * 1024 * 1024 + 1)

    async def pieces() -> AsyncIterator[bytes]:  # without a length
        for start in range(0, len(large), 100_000):
            yield large[start : start + 100_000]

    for body in (large, pieces()):
        answer = await api.client.put(content("large", "x"), content=body)
        document = problem_of(answer, 413, "body-too-large")
        assert document["detail"].startswith("a resource may have at most 2 MiB; that is resource_")
    assert objects(module_cluster, "large") == []
    await put(api, "large", "x", large[1:])
    answer = await api.client.put(content("large", "y"), content=large[1:])
    document = problem_of(answer, 409, "project-full")
    assert "would take 4 MiB with all versions, 3 MiB are allowed" in document["detail"]
    assert len(objects(module_cluster, "large")) == 1


async def test_change_of_a_version_that_is_not_the_newest_any_more_is_refused(api: Api) -> None:
    place = content("edits", "x")
    first = await api.client.put(place, content=b"one", params={"expected_version": 0})
    assert first.status_code == 201
    again = await api.client.put(place, content=b"two", params={"expected_version": 0})
    assert "is of version 1 now" in problem_of(again, 409, "resource-changed")["detail"]
    edited = await api.client.put(place, content=b"two", params={"expected_version": 1})
    assert edited.json()["version"] == 2


async def test_second_of_two_editors_of_a_file_is_told_what_is_there_now(api: Api) -> None:
    place, about = content("edits", "both"), path("edits", "both")
    new = {"If-None-Match": "*"}
    first = await api.client.put(place, content=b"one", headers=new)
    tag = first.headers["etag"]
    for where in (place, about):
        assert (await api.client.get(where)).headers["etag"] == tag
    problem_of(await api.client.put(place, content=b"x", headers=new), 412, "precondition-failed")
    seen = {"If-Match": tag}
    mine = await api.client.put(place, content=b"mine", headers=seen)
    assert (mine.status_code, mine.json()["version"]) == (201, 2)
    lost = await api.client.put(place, content=b"theirs", headers=seen)
    current = problem_of(lost, 412, "precondition-failed")["current"]
    assert (current["version"], lost.headers["etag"]) == (2, mine.headers["etag"])
    again = await api.client.put(place, content=b"mine", headers=seen)  # the answer was lost
    assert (again.status_code, again.json()["version"]) == (200, 2)
    problem_of(await api.client.delete(about, headers=seen), 412, "precondition-failed")
    newest = {"If-Match": mine.headers["etag"]}
    assert (await api.client.delete(about, headers=newest)).json() == {"files": 1}
    gone = await api.client.put(place, content=b"again", headers=newest)
    assert problem_of(gone, 412, "precondition-failed")["current"] is None
    problem_of(await api.client.delete(about, headers=newest), 412, "precondition-failed")
    assert (await api.client.delete(about)).status_code == 404


async def test_a_folder_is_deleted_if_there_is_one(api: Api) -> None:
    folder = path("edits", "dir/")
    anything = {"If-Match": "*"}
    problem_of(await api.client.delete(folder, headers=anything), 412, "precondition-failed")
    await put(api, "edits", "dir/a", b"1")
    of_a_file = (await api.client.get(path("edits", "dir/a"))).headers["etag"]
    wrong = await api.client.delete(folder, headers={"If-Match": of_a_file})
    problem_of(wrong, 412, "precondition-failed")
    assert (await api.client.delete(folder, headers=anything)).json() == {"files": 1}


async def test_file_and_folder_of_one_path_cannot_be(
    api: Api, module_cluster: ClusterSettings
) -> None:
    await put(api, "taken", "a/b", b"one")
    answer = await api.client.put(content("taken", "a"), content=b"two")
    assert "has the file a/b" in problem_of(answer, 409, "path-taken")["detail"]
    assert len(objects(module_cluster, "taken")) == 1


async def test_storage_that_has_lost_a_file_says_so(
    api: Api, module_cluster: ClusterSettings
) -> None:
    await put(api, "lost", "x", b"one")
    for one in objects(module_cluster, "lost"):
        one.unlink()
    answer = await api.client.get(content("lost", "x"))
    document = problem_of(answer, 503, "storage-unavailable")
    assert "it is not there" in document["detail"]
    assert "resources_url" in document["detail"]


async def test_token_is_asked_for_before_a_byte_is_read(api: Api) -> None:
    answer = await api.client.put(
        content("team", "x"), content=b"one", headers={"Authorization": "Bearer wrong"}
    )
    problem_of(answer, 401, "unauthorized")

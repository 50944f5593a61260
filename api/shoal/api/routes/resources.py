"""Resources of projects: files that tasks use, in versions."""

from typing import Annotated
from urllib.parse import quote

from fastapi import Path, Query, Request, Response
from fastapi.responses import StreamingResponse

from shoal.api.access.audit import Recording
from shoal.api.endpoints.guard import needs
from shoal.api.endpoints.preconditions import Condition, tagged
from shoal.api.endpoints.route import strict_router
from shoal.api.routes.projects import ProjectName
from shoal.api.schemas.common import Page
from shoal.api.schemas.resources import DeletedOut, ResourceOut
from shoal.api.services import FilesDep, StoreDep
from shoal.api.web.errors import FieldError, InvalidRequest
from shoal.api.web.paging import Cursor, Limit, decode_cursor, encode_cursor, page
from shoal.api.web.problems import documented
from shoal.core.access.permissions import Permission
from shoal.core.definition.resources import LARGEST_VERSION, LONGEST_PATH, path_problem
from shoal.sql import UnitOfWork
from shoal.sql.errors import NotFound

router = strict_router("resources")

MOST_OF_A_FOLDER = 10_000  # files that are counted before it is deleted

_OF_PROJECT = "/projects/{project}"
FilePath = Annotated[str, Path(description="Path within the project.", examples=["etl/clean.py"])]
Version = Annotated[
    int | None, Query(ge=1, le=LARGEST_VERSION, description="Without it the newest one.")
]
_CONTENT = {
    "application/octet-stream": {
        "schema": {"type": "string", "format": "binary"},
        "example": "print('hello')\n",
    }
}


@router.get(_OF_PROJECT + "/resources", summary="List resources", responses=documented(404))
@needs(Permission.PROJECT_READ)
async def list_resources(
    store: StoreDep,
    project: ProjectName,
    folder: Annotated[
        str, Query(max_length=LONGEST_PATH, description="Only files below it.", examples=["etl"])
    ] = "",
    limit: Limit = 50,
    cursor: Cursor = None,
) -> Page[ResourceOut]:
    """The newest versions of a project's files, by path."""
    after = decode_cursor("resources", cursor, str)
    async with store.unit_of_work(read_only=True) as uow:
        await uow.projects.get(project)
        start = after[0] if after else None
        found = await uow.resources.list(project, folder.rstrip("/"), start, limit + 1)
    items, more = page(found, limit)
    return Page(
        items=[ResourceOut.model_validate(one) for one in items],
        next=encode_cursor("resources", items[-1].path) if more else None,
    )


@router.get(
    _OF_PROJECT + "/resources/{path:path}", summary="Show a resource", responses=documented(404)
)
@needs(Permission.PROJECT_READ)
async def get_resource(
    store: StoreDep,
    project: ProjectName,
    path: FilePath,
    response: Response,
    version: Version = None,
) -> ResourceOut:
    """A version of a file, without its content. The ETag identifies the content."""
    async with store.unit_of_work(read_only=True) as uow:
        found = ResourceOut.model_validate(await uow.resources.get(project, path, version))
    return tagged(response, found, _tag(found))


def _tag(file: ResourceOut) -> str:
    """Return the ETag of a version: what has the same content is the same."""
    return f'"{file.sha256}"'


async def _newest(uow: UnitOfWork, project: str, path: str) -> ResourceOut:
    return ResourceOut.model_validate(await uow.resources.get(project, path))


async def _below(uow: UnitOfWork, project: str, folder: str) -> DeletedOut:
    """Return how many files a folder has. Raises NotFound."""
    found = await uow.resources.list(project, folder, limit=MOST_OF_A_FOLDER)
    if not found:
        raise NotFound("resource", f"{project}/{folder}/")
    return DeletedOut(files=len(found))


@router.get(
    _OF_PROJECT + "/resource-versions/{path:path}",
    summary="List the versions of a resource",
    responses=documented(404),
)
@needs(Permission.PROJECT_READ)
async def list_resource_versions(
    store: StoreDep, project: ProjectName, path: FilePath, limit: Limit = 50, cursor: Cursor = None
) -> Page[ResourceOut]:
    """The versions of a file, the newest first. Versions of a deleted file are kept for a while."""
    below = decode_cursor("resource-versions", cursor, int)
    async with store.unit_of_work(read_only=True) as uow:
        start = below[0] if below else None
        found = await uow.resources.versions(project, path, start, limit + 1)
        if not found and start is None:
            await uow.resources.get(project, path)  # says that there is none
    items, more = page(found, limit)
    return Page(
        items=[ResourceOut.model_validate(one) for one in items],
        next=encode_cursor("resource-versions", items[-1].version) if more else None,
    )


@router.put(
    _OF_PROJECT + "/resource-contents/{path:path}",
    summary="Upload a resource",
    responses={
        201: {"model": ResourceOut, "description": "It is a new version."},
        **documented(404, 408, 409, 413),
    },
    openapi_extra={"requestBody": {"required": True, "content": _CONTENT}},
)
@needs(Permission.PROJECT_EDIT, audit="resource.set")
async def upload_resource(
    files: FilesDep,
    record: Recording,
    project: ProjectName,
    path: FilePath,
    request: Request,
    condition: Condition,
    expected_version: Annotated[
        int | None,
        Query(
            ge=0,
            le=LARGEST_VERSION,
            description="409 unless this is the newest version; 0: unless there is none. For "
            "programs that count versions; `If-Match` does the same.",
        ),
    ] = None,
) -> ResourceOut:
    """The body is the file, byte for byte.

    The same content as that of the newest version makes no new one, whatever the condition. Runs
    that start from now on use it; those that have started go on with what they began with.
    """
    if problem := path_problem(path):
        raise InvalidRequest([FieldError("path", problem)])
    files.check_size(request.headers.get("content-length", ""))
    stored, is_new = await files.put(
        project,
        path,
        request.stream(),
        expected_version,
        record,
        lambda uow: condition.check(lambda: _newest(uow, project, path), tag_of=_tag),
    )
    answer = ResourceOut.model_validate(stored)
    return condition.answer(answer, is_new=is_new, tag=_tag(answer))


@router.get(
    _OF_PROJECT + "/resource-contents/{path:path}",
    summary="Download a resource",
    response_class=StreamingResponse,
    responses={
        200: {"content": _CONTENT, "description": "The file, byte for byte."},
        **documented(404),
    },
)
@needs(Permission.PROJECT_READ)
async def download_resource(
    store: StoreDep, files: FilesDep, project: ProjectName, path: FilePath, version: Version = None
) -> Response:
    """The content of a version of a file."""
    async with store.unit_of_work(read_only=True) as uow:
        found = await uow.resources.get(project, path, version)
    pieces = await files.content(found)
    name = quote(found.path.rpartition("/")[2], safe="")
    return StreamingResponse(
        pieces,
        media_type="application/octet-stream",
        headers={
            "Content-Disposition": f"attachment; filename*=UTF-8''{name}",
            "Content-Length": str(found.size),
            "ETag": f'"{found.sha256}"',
            "Shoal-Version": str(found.version),
        },
    )


@router.delete(
    _OF_PROJECT + "/resources/{path:path}",
    summary="Delete a resource",
    responses=documented(404),
)
@needs(Permission.PROJECT_EDIT, audit="resource.delete")
async def delete_resource(
    store: StoreDep, project: ProjectName, path: FilePath, condition: Condition
) -> DeletedOut:
    """Deletes a file; with a slash at the end of the path, all files below the folder.

    A folder has no ETag: `If-Match: *` says that there is one.
    Runs that have started go on with it. Its versions can be downloaded by their numbers until
    masters remove them.
    """
    folder = path.endswith("/")
    async with store.unit_of_work() as uow:
        name = path.removesuffix("/")
        await uow.projects.require(project)
        if folder:
            await condition.check(lambda: _below(uow, project, name))
        else:
            await condition.check(lambda: _newest(uow, project, name), tag_of=_tag)
        count = await uow.resources.delete(project, name, store.clock(), is_folder=folder)
        await uow.commit()
    return DeletedOut(files=count)

"""Data sources of the project, as the API is told of them."""

from shoal.core.data_sources import DataSource
from tests.chaos.workload.rest import Api


async def put_source(api: Api, source: DataSource) -> None:
    """Make a data source of the project ``default``."""
    body = {
        "kind": source.kind,
        "host": source.host,
        "port": source.port,
        "database": source.database,
        "user": source.user,
        "password": source.password or None,
        "options": dict(source.options),
    }
    given = {name: value for name, value in body.items() if value not in (None, "")}
    await api.request("PUT", f"/projects/default/data-sources/{source.name}", json=given)

"""Data sources as messages."""

import json

from shoal.core.data_sources import DataSource
from shoal.proto import shoal_pb2 as pb


def to_message(source: DataSource) -> pb.DataSource:
    """Return the message for a data source; its name travels beside it."""
    return pb.DataSource(
        kind=source.kind,
        host=source.host,
        port=source.port or 0,
        database=source.database,
        user=source.user,
        options_json=json.dumps(dict(source.options), ensure_ascii=False),
        password=source.password,
        version=source.version,
    )


def from_message(name: str, message: pb.DataSource) -> DataSource:
    """Return the data source of a message."""
    return DataSource(
        name=name,
        kind=message.kind,
        host=message.host,
        port=message.port or None,
        database=message.database,
        user=message.user,
        options=json.loads(message.options_json or "{}"),
        password=message.password,
        version=message.version,
    )

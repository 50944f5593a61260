"""Run Alembic. Imported only where a schema is behind: it takes 10 MB and a third of a second."""

from pathlib import Path

from alembic import command
from alembic.config import Config
from sqlalchemy import Connection


def to_head(connection: Connection, folder: Path) -> None:
    """Bring the schema to the newest revision in ``folder``, in the connection's transaction."""
    config = Config()
    # Not through the ini syntax's interpolation: the path may hold a percent sign.
    config.set_main_option("script_location", str(folder).replace("%", "%%"))
    config.set_main_option("path_separator", "newline")
    config.attributes["connection"] = connection
    command.upgrade(config, "head")

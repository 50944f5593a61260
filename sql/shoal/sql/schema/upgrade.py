"""Run Alembic. Imported only where a schema is behind: it takes 3 MB and a fifth of a second."""

import sys
from pathlib import Path
from types import ModuleType
from typing import cast

from sqlalchemy import Connection

# Alembic's templates would load Pygments with its lexers (6 MB) to colour tracebacks of templates.
sys.modules.setdefault("mako.ext.pygmentplugin", cast(ModuleType, None))

from alembic import command  # noqa: E402
from alembic.config import Config  # noqa: E402


def to_head(connection: Connection, folder: Path) -> None:
    """Bring the schema to the newest revision in ``folder``, in the connection's transaction."""
    config = Config()
    # Not through the ini syntax's interpolation: the path may hold a percent sign.
    config.set_main_option("script_location", str(folder).replace("%", "%%"))
    config.set_main_option("path_separator", "newline")
    config.attributes["connection"] = connection
    command.upgrade(config, "head")

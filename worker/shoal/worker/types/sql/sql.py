"""SQL: statements in a database of the project."""

from shoal.worker.types.child.kind import ChildType
from shoal.worker.types.sql.params import SqlParams


class Sql(ChildType[SqlParams]):
    """Runs statements on a data source, in a process of the attempt's own."""

    Params = SqlParams
    work = "shoal.worker.types.sql.run:run"
    settles = True

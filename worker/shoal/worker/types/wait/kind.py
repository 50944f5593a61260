"""The task types that wait."""

from shoal.worker.types.wait.file_params import WaitFileParams
from shoal.worker.types.wait.looks import LookType
from shoal.worker.types.wait.sql_params import WaitSqlParams


class WaitFile(LookType[WaitFileParams]):
    """Waits for files, on the worker or behind a URL."""

    Params = WaitFileParams
    work = "shoal.worker.types.wait.file_work:run"


class WaitSql(LookType[WaitSqlParams]):
    """Waits until a query of a data source says so."""

    Params = WaitSqlParams
    work = "shoal.worker.types.wait.sql_work:run"
    settles = True

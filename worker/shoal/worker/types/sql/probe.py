"""Probe of a database: sign in, and ask for the version of the server."""

from shoal.worker.types.child.probe import ProbeParams
from shoal.worker.types.child.work import Work
from shoal.worker.types.sql import drivers
from shoal.worker.types.sql.databases import database_kind

STATEMENT_TIMEOUT_S = 10.0


def probe(work: Work[ProbeParams]) -> None:
    """Write the version of the server into the log. Raises WorkFailed with advice."""
    source = work.data_source(work.params.data_source)
    session = drivers.connect(
        source,
        tag=work.tag,
        attempt=1,
        log=lambda _: None,
        read_only=True,
        statement_timeout_s=STATEMENT_TIMEOUT_S,
    )
    work.on_cancel(session.terminate)
    try:
        result = session.execute(database_kind(source).version)
        rows = list(result)
        result.close()
    finally:
        session.close()
    work.log(str(rows[0][0]).split(", compiled", 1)[0].splitlines()[0])

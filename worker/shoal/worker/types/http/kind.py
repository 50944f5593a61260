"""The task type HTTP."""

from shoal.worker.types.child.kind import ChildType
from shoal.worker.types.http.params import HttpParams


class Http(ChildType[HttpParams]):
    """Sends a request in a process of the attempt's own. A kill ends it at once."""

    Params = HttpParams
    work = "shoal.worker.types.http.work:run"

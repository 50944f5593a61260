"""The task type HTTP."""

from collections.abc import Mapping
from typing import Any

from shoal.worker.types.child.kind import ChildType
from shoal.worker.types.http.params import HttpParams


class Http(ChildType[HttpParams]):
    """Sends a request in a process of the attempt's own. A kill ends it at once."""

    Params = HttpParams
    work = "shoal.worker.types.http.work:run"

    @classmethod
    def repeats_after_loss(cls, params: Mapping[str, Any]) -> bool:
        """See TaskKind: a request that is not idempotent may have been carried out."""
        return HttpParams.model_validate(params).is_idempotent

"""HTTP: a request that takes its time."""

from collections.abc import Mapping
from contextlib import AsyncExitStack
from typing import Any

from tests.kills.kinds.kind import Kind
from tests.kills.plan import Case
from tests.kills.sides.requests import RequestsSide
from tests.kills.sides.side import Side


class Http(Kind):
    """An HTTP task: POST, which may not be sent twice, or PUT."""

    name, label = "HTTP", "HTTP"
    declares = may_stay_lost = True

    async def serve(self, stack: AsyncExitStack) -> Side:
        """See Kind."""
        self.requests = RequestsSide()
        await stack.enter_async_context(self.requests.server)
        return self.requests

    def task(self, case: Case) -> Mapping[str, Any]:
        """See Kind."""
        url = f"{self.requests.server.url}/work?case={case.marker}&seconds={case.seconds}"
        method = "PUT" if case.idempotent else "POST"
        return {"type": "HTTP", "params": {"method": method, "url": url}}

    def effects(self, case: Case) -> int:
        """See Kind."""
        return self.requests.answered[case.marker]

    def received(self, case: Case) -> int:
        """See Kind."""
        return self.requests.received[case.marker]

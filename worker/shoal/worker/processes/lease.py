"""The lease: until when the processes of this worker may live, told to the launcher.

A task may be started elsewhere once this worker's ZooKeeper session can have ended. So its
processes must be dead by then, whatever becomes of the agent.

======================  ====================================================================
the session is proven   the agent extends the lease, to the moment until which it is proven
the agent hangs, or     the lease runs out: the launcher kills everything, and refuses launches
cannot reach ZooKeeper  until it is extended
the launcher hangs      its watchdog kills it, and everything, when the patience is over
the watchdog hangs too  the agent kills both, when twice the patience is over
the agent dies          the launcher kills everything at once, stores the records, and ends
all of them are killed  the shims kill what is below them; the next start of the worker kills
                        what carries its mark (``home/cgroups.py``, ``home/leftovers.py``)
======================  ====================================================================

The proof ends at 0.7 of the session timeout, the patience a tenth of it later; others take over
when all of it has passed. Deadlines go by the clock that counts suspended time
(``supervisor/clock.py``).
"""

import asyncio

from shoal.coordination import SessionState, ZkSession
from shoal.worker.processes.launcher import SHORTEST_PATIENCE_S, Launcher

RENEWAL = 1 / 6  # of the session timeout
STEP_S = 0.05  # less is not worth a message to the launcher
PATIENCE = 1 / 10  # of the session timeout


class Lease:
    """Extends the launcher's lease as long as ``session`` is proven; before each launch, too."""

    def __init__(self, session: ZkSession, launcher: Launcher) -> None:
        self._session, self._launcher = session, launcher
        self._until = -1.0  # as the launcher knows it; ``boottime`` seconds
        launcher.before_launch(self.renew)

    def renew(self) -> None:
        """Let attempts live as long as our session is proven to."""
        deadline = max(0.0, self._session.proven_until)
        if 0 <= deadline - self._until < STEP_S:
            return
        self._until = deadline
        patience_s = max(SHORTEST_PATIENCE_S, PATIENCE * self._session.timeout_s)
        self._launcher.extend_lease(deadline, patience_s)

    async def keep(self) -> None:
        """Renew for ever; end everything as soon as the session is lost."""
        unsubscribe = self._session.on_state(self._session_changed)
        try:
            while True:
                self.renew()
                await asyncio.sleep(RENEWAL * self._session.timeout_s)
        finally:
            unsubscribe()

    def _session_changed(self, state: SessionState) -> None:
        if state is SessionState.LOST:
            self.renew()  # there is none: everything ends now

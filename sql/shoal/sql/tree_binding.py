"""A database as one side of the binding between it and a ZooKeeper tree.

The protocol is that of ``coordination/cluster/binding.py``; this is the ``BindingStore`` it works
with. Each call is a transaction of its own.
"""

from shoal.core.runs.records import StoredBinding
from shoal.sql.engine import Database


class TreeBinding:
    """Reads and changes which tree ``database`` is bound to."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._noted: str | None = None  # the cluster's uid that is among its names

    async def read(self) -> StoredBinding:
        """Return the present binding. Raises DatabaseUnavailable."""
        address = self._database.address
        async with self._database.unit_of_work(read_only=True) as uow:
            found = await uow.cluster.binding(address)
        if found is not None and found.cluster == self._noted:
            return found
        async with self._database.unit_of_work() as uow:
            # A lost row is made anew, and a new uid is noted before anything is named by it.
            self._noted = await uow.cluster.uid()
            found = await uow.cluster.binding(address)
            await uow.commit()
        assert found is not None
        return found

    async def bind(
        self, tree: str, address: str, seen: StoredBinding, *, even_if_alive: bool
    ) -> bool:
        """Bind the database to ``tree``, as ``Cluster.bind`` does. Raises DatabaseUnavailable."""
        async with self._database.unit_of_work() as uow:
            is_bound = await uow.cluster.bind(tree, address, seen, even_if_alive=even_if_alive)
            await uow.commit()
        return is_bound

    async def beat(self, tree: str) -> None:
        """Note that a master in ``tree`` is alive. Raises DatabaseUnavailable."""
        async with self._database.unit_of_work() as uow:
            await uow.cluster.beat(tree)
            await uow.commit()

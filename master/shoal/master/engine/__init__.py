"""Events in, decisions stored, actions out. The loop of ``engine``::

    items = inbox.take()                      # events that wait
    changes = decide(run, event) …            # pure, run by run; memory is ahead of the database
    async with database.unit_of_work() as uow:
        await uow.fence(epochs)               # the partitions are ours still, or nothing happens
        await uow.instances.save(changes)     # with messages, slots and outcomes of commands
        await uow.commit()
    actions.add(…)                            # only now: the queue, workers, services
    item.answer(run)                          # only now: callers

What may fail, and what happens then:

- The fence refuses an epoch: another master owns the partition. Its runs are dropped, its events
  refused, and the rest of the batch is decided again.
- The store fails: nothing of the batch happened. Its runs are evicted from memory and read again.
- One run cannot be read, decided or stored: it is quarantined, and the others go on.
- The master dies after the commit: the next owner derives the actions from what is stored. They are
  harmless when repeated.

``held_runs`` takes and drops partitions, ``actions`` carries the actions out, ``publications`` and
``eager_dispatch`` take part in the store, and ``listeners`` is what services hear.
"""

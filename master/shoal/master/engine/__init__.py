"""Events in, decisions stored, actions out. The loop of ``engine``::

    items = inbox.take()                      # events that wait
    changes = decide(run, event) …            # pure, run by run; memory is ahead of the database
    async with database.unit_of_work() as uow:
        await uow.fence(epochs)               # the partitions are ours still, or nothing happens
        await uow.instances.save(changes)     # with messages, slots and outcomes of commands
        await uow.commit()
    actions.add(…)                            # only now: the queue, workers, services
    item.answer(run)                          # only now: callers

If the store fails, the runs are evicted from memory and read again. ``held_runs`` takes and drops
partitions; ``beginning`` decides what new runs begin with; ``action_queue`` and ``perform`` carry
the actions out, which are harmless when repeated; ``listeners`` is what services hear.
"""

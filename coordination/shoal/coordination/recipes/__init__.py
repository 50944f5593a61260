"""Building blocks for any program: election, fences, fair shares, jobs.

The public names are those of ``shoal.coordination``; ``docs/coordination.md`` has a program for
each. Masters share their partitions by ``FairShare``.

Ownership of a partition, as one process sees it:

========  ====================================================================================
free      no owner node, or another process's: this process may only try to create the node
owned     this process created the node. Its creation number is the epoch of all its writes
released  ``on_released`` runs while the node still stands; then the node is deleted
lost      ``on_lost``: the node is gone, or the session cannot be proven. Nothing is written
========  ====================================================================================

- **Two processes create the node**: ZooKeeper lets one succeed; the other one waits.
- **The owner dies**: the node ends with its session; the next owner waits ``takeover_delay_s``.
- **The owner is paused or cut off**: it stops after 0.7 of the session timeout, before another
  process can begin. Writes that it sent earlier carry its epoch, and the database refuses them.
- **The node is deleted or replaced**: ``on_lost``, then a new node with a higher epoch.
- **ZooKeeper loses its data**: creation numbers begin again, so stored epochs are raised above
  the former ones before anything is written.
"""

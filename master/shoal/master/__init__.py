"""The master: commands become runs, runs are decided, tasks go to the queue.

``engine`` decides and stores; ``services`` see to commands, schedules and the like; ``dispatch``
answers workers; ``membership`` says which partitions are this master's. Start with ``main``, which
opens what a master works with, and ``composition``, which puts the parts together. Other packages
import ``main.serve`` and ``settings`` alone.
"""

"""One task, run here and now for ``shoal test``: no cluster, no claim, no lease, no record.

``inputs`` renders what the task gets, with the code of a master; ``execution`` runs it, with the
code of a worker.
"""

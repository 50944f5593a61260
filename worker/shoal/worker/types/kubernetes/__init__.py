"""Kubernetes, as task types use it: one way in, pods that are watched, followed and ended.

``client.Cluster`` is the way in, by what the worker's administrator says. ``pods`` reads the state
of a pod, ``pod_log`` follows what it writes, ``removal`` deletes what carries a task's tag and
waits until that is gone. Imported in the process of an attempt alone. It knows no task type.
"""

"""The task type FLINK: a job of a jar in a session cluster, submitted by Flink's REST API.

``kind`` has the type and its fields; the API imports it alone. In the process
of an attempt ``run`` submits the job and ``progress`` stays with it. ``names`` has the ids and
names by which everything of a task is known in the cluster, ``leftovers`` ends what is found there
by them, ``cluster`` is the REST API, and ``failures`` what Flink's exceptions mean. Start reading
in ``names``, then ``run``.
"""

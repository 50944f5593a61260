"""The task type MR: a MapReduce job of a jar, run by Hadoop's own client.

Start reading in ``kind``, then ``run``, the work in the attempt's process; ``job_log`` is what
the client says of its jobs.
"""

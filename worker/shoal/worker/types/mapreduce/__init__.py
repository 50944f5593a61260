"""The task type MR: a MapReduce job of a jar, run by Hadoop's own client.

Start reading in ``params``, then ``run``, the work in the attempt's process. ``hadoop`` is the
client's command line and settings, ``job_log`` what it says of its jobs, ``yarn`` finds and ends
what an attempt has left in a cluster.
"""

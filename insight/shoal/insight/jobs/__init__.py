"""PySpark jobs that turn the history into what people look at: ``python -m shoal.insight.jobs``.

Start reading at ``catalogue``, which lists the jobs. Each is a function in ``rollups`` from rows to
a table of results; ``kernels`` has what they do in NumPy. ``running`` brings what is ``wanted`` of
the history (``source``) to where the jobs read it (``preparing``, ``rows``), computes (``session``)
and stores results one whole day at a time (``staging``).
Nothing here is imported by other parts of Shoal, so PySpark is needed by these programs alone.
"""

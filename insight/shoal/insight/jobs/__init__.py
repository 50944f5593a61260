"""PySpark jobs that turn the history into what people look at: ``python -m shoal.insight.jobs``.

Start reading at ``catalogue``, which lists the jobs. Each is a function in ``rollups`` from rows to
a table of results; ``kernels`` does the arithmetic in NumPy. The columns of results are declared
in ``serving/results``. ``run`` selects files of the history (``source``, ``needs``), copies the
rows to where the jobs read them (``preparation``, ``rows``), computes (``session``) and stores
results one whole day at a time (``output``). ``late_rows`` finds days to compute again.
Nothing here is imported by other parts of Shoal, so PySpark is needed by these programs alone.
"""

"""What run history tells: its export as Parquet, Spark jobs over it, a simulator.

Start reading at ``history``, which says what is exported and how its files are named. ``export``
writes these files, ``jobs`` are the PySpark pipeline that rolls them up, ``simulate`` plays a week
in advance. docs/insight.md and docs/history.md are its pages.
"""

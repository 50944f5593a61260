"""How attempts end, and how their results leave the worker: stored, then reported until committed.

Start with ``endings``; ``results`` makes a report of a record, ``reporter`` sends it.
"""

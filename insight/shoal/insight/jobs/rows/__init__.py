"""Rows of the history on their way from its files to the jobs.

``chunks`` are what is read at once, ``superseded`` finds the rows that do not count, ``division``
sends the others to the ``parts`` that the jobs read.
"""

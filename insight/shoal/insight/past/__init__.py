"""Runs of the past: pages of them, and one with its attempts, out of the exported history.

``questions`` is what can be asked, without a library for Parquet; ``asking`` starts the process
that answers, ``program``, when somebody asks; ``reading`` finds the answers in the files.
"""

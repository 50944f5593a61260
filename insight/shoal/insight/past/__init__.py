"""Runs of the past: pages of them, and one with its attempts, out of the exported history.

``questions`` has questions and answers, and needs no library for Parquet. ``client`` starts the
process that answers, ``program``, with the first question. ``reader`` finds the answers in files.
"""

"""Definitions in files: YAML, JSON and Python, with the line of every value.

Start with ``definitions``, which loads files and folders and reports every problem of all of them.
"""

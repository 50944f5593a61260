"""Workflows: what is published, how it came to be, and what becomes of it.

``published`` has the newest definitions, ``versions`` those before, ``drafts`` those to come;
``layouts`` where their tasks are on the canvas; ``lifecycle`` copies, renames, archives;
``exchange`` is for whole projects.
"""

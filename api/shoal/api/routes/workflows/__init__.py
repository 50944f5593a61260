"""Workflows: what is published, how it came to be, and what becomes of it.

``published`` has the newest definitions, ``versions`` those before, ``drafts`` those to come;
``lifecycle`` copies, renames, archives; ``exchange`` is for whole projects.
"""

"""Definitions as documents of YAML: read with the line of every value, and written for people.

``yaml_file`` reads, ``yaml_text`` writes; a ``Source`` is what was read and where it stands.
"""

"""The exported history: its tables, the names of its files, and the manifest that lists them.

A file counts only when a manifest names it. ``tables`` has the columns, ``manifest`` the chain of
manifests and how readers go by it.
"""

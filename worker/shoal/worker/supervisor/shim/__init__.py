"""The process between the launcher and one attempt: it starts the program and stores its end.

Start with ``shim``. Standard library alone, as in the package above.
"""

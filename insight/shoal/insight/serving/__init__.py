"""Results of the jobs get into the database, where the API reads them.

``results`` says which results those are, ``marks`` how a run of the jobs announces them. Start
reading with ``loader``.
"""

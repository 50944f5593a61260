"""The SQL task type: statements run in a database of the project, results become outputs or files.

``sql`` has the type and its fields, ``databases`` the kinds of data sources that it can use. The
API imports only these. In the process of an attempt ``run`` leads through ``session.Session``,
which each driver implements. Start reading in ``run``. What may still run in a database after an
attempt, and who ends it, is explained in ``drivers``.
"""

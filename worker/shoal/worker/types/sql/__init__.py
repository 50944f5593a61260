"""The SQL task type: statements run in a database of the project, results become outputs or files.

``sql`` has the type and its fields; the API imports it alone. In the process of
an attempt ``run`` leads through ``session.Session``, which each package of ``drivers`` implements.
Start reading in ``run``.
"""

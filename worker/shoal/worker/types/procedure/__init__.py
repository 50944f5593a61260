"""The PROCEDURE task type: a procedure or function of a database is called, with what it returns.

``kind`` has the type and its fields; the API imports it alone. In the
process of an attempt ``run`` asks the database what the routine takes (``postgresql`` and
``mariadb`` know how), ``routines`` chooses among those of one name, and what comes back becomes
outputs. Start reading in ``run``.
"""

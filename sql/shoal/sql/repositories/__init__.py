"""What can be asked of the database and changed in it, by subject.

A repository lives in one ``UnitOfWork`` and never commits. Start with ``runs.instances``.
"""

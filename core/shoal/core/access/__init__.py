"""Who may do what: permissions, roles, principals, and the one function that judges.

Pure values. Where principals come from is ``shoal.sql`` (rows) and ``shoal.api.access``
(requests). Start reading at ``authorization.py``.
"""

"""Who calls, and what they may do: from the credentials of a request to a judged request.

Each route says beside its path what it needs: ``needs(Permission.…)``. Start reading at
``guard.py``; ``identities.py`` says who is behind a token or a cookie.
"""

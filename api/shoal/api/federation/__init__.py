"""Signing in elsewhere: at OpenID providers, and at a directory (LDAP).

Both end in an ``Identity``: who somebody is for an issuer. Which account that is, and which groups
it is in, ``entering.py`` says, for both alike. Start reading at ``provider.py`` or
``directory.py``; the way through a browser is in ``flow.py``.
"""

"""Who sends a request, and whether it may do what it asks for.

A request shows a credential: an API token, the cookie of a session, or the token of the data
folder. ``authentication`` finds it, ``identities`` says whose it is, and ``callers`` asks the core
(``shoal.core.access``) whether that principal may do something. ``audit`` stores who did what.

Rights are remembered. The number of their changes in the database is compared before a remembered
answer is used, but not twice within 0.5 s. So a right that is taken away is gone on every API
process within a second, open streams included. If the database does not answer, requests fail, and
open streams continue with the rights that they had. The token of the data folder needs no database.

Start reading at ``control``, which holds the parts together. The routes say what they need in
``shoal.api.endpoints``.
"""

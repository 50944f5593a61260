"""Calls about who may do what: one's own account, users, groups, members, service accounts.

``calls`` joins them for ``ShoalClient``; ``sign_in`` begins a session with a password.
"""

"""Who may do what, as it is stored: principals, groups, roles, and what they sign in with.

Whatever takes or gives rights calls ``Rights.changed`` in the same transaction.
"""

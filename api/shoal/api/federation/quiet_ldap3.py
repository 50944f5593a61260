"""The LDAP library, which asks pyasn1 for names that are about to go: no warning helps us."""

import warnings

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)
    import ldap3
    import ldap3.core.exceptions
    import ldap3.utils.conv
    import ldap3.utils.dn

__all__ = ["ldap3"]

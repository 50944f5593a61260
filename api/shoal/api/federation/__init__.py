"""Sign-in at OpenID providers and at a directory (LDAP).

Both end in an ``Identity``: issuer and subject of a person. ``accounts`` alone turns an identity
into a session: it finds or makes the account, and sets the groups that the issuer names.

A sign-in at a provider (``provider``: OpenID Connect Core, authorization code flow with PKCE) has
these states. Nothing is stored before the last one, so any API process can continue a sign-in.

======================  ==============================================================
begun                   The browser has a cookie (10 minutes) with one secret. State,
                        nonce and code verifier are derived from it (``flow``).
at the provider         The provider authenticates the person, and redirects back.
returned                The state must match the cookie of this browser. The code is
                        exchanged for an ID token, which must be signed by a key of
                        the provider, for this issuer, audience, nonce and moment.
ended                   ``sign_ins`` stores the digest of the secret with the session,
                        in one transaction. A page of this API leads on.
waiting for a command   ``shoal login --oidc`` listens on loopback (RFC 8252): instead
                        of a session the browser gets a code (60 s), which only the
                        command's own verifier turns into a session, once.
======================  ==============================================================

What can fail:

- The cookie is missing, expired or of another sign-in: SignInFailed, nothing was begun.
- The same answer arrives twice: the stored digest makes the second one SignInFailed.
- The provider does not answer, or answers wrongly: IssuerUnavailable; the reason is in the log.
- A signing key is unknown: the keys are read again, at most every 10 s, then the token is refused.
- The person has no account, or its name is taken: SignInRefused, AccountNameTaken. An existing
  account is never taken over; an administrator links it.

A directory (``directory``) checks a name and a password at once. Wrong passwords count like those
of accounts here, and a refusal takes as long whether the directory knows the name or not.
"""

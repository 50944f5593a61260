"""Stores of others that secrets are kept in: mounted files, HashiCorp Vault, plug-ins.

A secret of a project may be a *reference*, ``STORE:PATH#FIELD``, in place of a ciphertext. What it
refers to is read when a worker fetches an attempt that uses it, is in memory alone, and is
forgotten after seconds.

``store`` is what a plug-in implements; ``reference`` says who may read what; ``stores`` are those
of the settings; ``resolver`` is how masters read, without waiting for stores that do not answer.
"""

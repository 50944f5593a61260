"""Secrets that are kept in other stores: real files, and a server that speaks as Vault does."""

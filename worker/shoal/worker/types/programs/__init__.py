"""SHELL and PYTHON, and what all types have in common that run a program of the user.

Start with ``program``.
"""

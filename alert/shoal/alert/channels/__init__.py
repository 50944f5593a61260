"""Kinds of channels, each in a module: ``email``, ``webhook``, ``script``, ``chat``, ``snmp``.

Modules import what sending needs only when they send: the API imports them for their options.
"""

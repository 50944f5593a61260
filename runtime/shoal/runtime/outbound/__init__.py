"""Connections to servers that users name: which addresses may be reached (``addresses``), and a
backend that connects to no others (``guard``).
"""

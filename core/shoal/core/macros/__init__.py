"""Placeholders in texts: ``${parameter}`` and ``$[date expression]``.

Start with ``placeholders``, which renders a text; ``template`` finds what is to be replaced,
``date_expression`` computes moments, ``date_pattern`` writes them. Nothing here knows a workflow.
"""

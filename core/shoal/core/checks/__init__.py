"""Find everything that is wrong with a definition, and say where.

Start with ``workflow``; ``parameters`` does the same for parameters, dates and secrets.
"""

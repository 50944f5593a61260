"""The DATA_QUALITY task type: what must be true of a table, asked and judged.

``kind`` has the type and its fields; the API imports it alone. In the
process of an attempt ``queries`` makes one query of all that can be counted in one, and a query for
the rows that fail; ``judgement`` holds the answers against what is wanted; ``run`` does both, shows
the rows and fails or warns. Start reading in ``run``.
"""

"""Author workflows in Python. The public names are those of ``shoal.client``.

Start with ``workflow``; ``tasks``, ``logic`` and ``schedules`` are what stands in one.
"""

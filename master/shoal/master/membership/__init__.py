"""Which partitions this master has, and when it gives them up.

Start with ``partitions``; a master without its database leaves the group (``participation``).
"""

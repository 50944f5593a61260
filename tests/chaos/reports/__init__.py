"""What a run found, in parts, as figures and as the page that is kept.

Start with ``report``.
"""

"""The API as Python calls. The public names are those of ``shoal.client``.

Start with ``client``; ``connection`` repeats what may be repeated, ``types`` is what comes back.
"""

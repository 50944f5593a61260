"""The API as Python calls. The public names are those of ``shoal.client``.

Start with ``client``; ``operations`` has the generated methods and types, ``connection`` sends
requests and repeats those that may be repeated, ``access`` signs in.
"""

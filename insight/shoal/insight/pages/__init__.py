"""Pages to look at: one HTML file each, which needs nothing else, neither script nor network.

``document`` is the frame of a page and its tables, ``charts`` are drawings (SVG) in it. They follow
the reader's light or dark setting, print, and say in words and tables what drawings show.
"""

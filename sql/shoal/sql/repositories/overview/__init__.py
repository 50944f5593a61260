"""Reads many runs at once, for pages that show many: grids, calendars, what happens today.

Each costs what it shows, however long the history is. ``grid`` is the
place to start.
"""

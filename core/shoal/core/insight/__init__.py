"""What results of the jobs over the history mean: windows, trends, baselines, expected ends.

Pure: rows of results come in as mappings with the columns of ``docs/insight.md``, times come from
outside. ``windows`` has what days are looked at, ``days`` what is kept of a row, ``baselines`` how
long something usually takes, ``expectation`` when an open run will end.
"""

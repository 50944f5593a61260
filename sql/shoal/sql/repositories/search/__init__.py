"""Lists of runs and attempts that a filter chooses: each page costs what it reads, and no more.

``instances`` and ``tasks`` find ids; the repositories in ``runs`` make records of them.
"""

"""A report of a window: what has run, what has changed, and what is to come.

``collected`` is what it is made of, answers of the API; ``words`` says numbers and changes, for the
command line and the page alike; ``page`` puts the page together from ``sections``.
"""

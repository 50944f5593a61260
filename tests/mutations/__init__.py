"""Safety checks taken out of the code one at a time: for each, some test must fail.

``python -m tests.mutations`` copies the working tree, checks that the named tests pass there, and
how patient each has to be, and then applies one mutation after the other to fresh copies. The list
is in ``catalogue``.
"""

"""Task types whose work is Python: it is done in a process of the attempt's own, not in the agent.

``kind.ChildType`` is what such a type extends. In the agent it only starts the process and writes
a ``request.Request`` to its standard input; ``__main__`` reads that and calls the type's work with
a ``work.Work``. Start reading in ``work``, then ``outcome``: how a failure says whether it would be
the same another time. May be imported by all task types; imports none of them.
"""

"""How a request reaches a server, and how its answer comes back.

``exchange`` sends one request. ``guard`` opens its connection, to addresses that ``addresses``
lets through; ``body`` takes the answer in without ever holding much of it. May import ``answer``
and ``request`` of the package above, and nothing else of it.
"""

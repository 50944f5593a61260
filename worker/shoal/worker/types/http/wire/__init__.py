"""How a request reaches a server, and how its answer comes back.

``exchange`` sends one request, over a connection that ``shoal.runtime.outbound`` opens; ``body``
takes the answer in without ever holding much of it. May import ``answer`` and ``request`` of the
package above, and nothing else of it.
"""

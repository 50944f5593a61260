"""httpx without a command line of its own, which takes click, rich and pygments along.

That is more than half of what it costs to import it: a third of the processor time of a command
that asks one question. Import this before anything that imports httpx.
"""

from shoal.client.absent import absent

with absent("httpx._main"):
    import httpx as httpx

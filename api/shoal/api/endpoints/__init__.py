"""How a route is declared: what its caller needs, how strict it is, and its ``If-Match``.

``@needs(Permission.…, audit="noun.verb")`` beside the path declares both the permission and the
entry in the audit; a route without it is not made. Before a handler begins its guard has judged
each thing that the path and the body name.
"""

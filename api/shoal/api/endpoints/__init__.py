"""How a route is declared: what its caller needs, its class, and its ``If-Match``."""

"""What messages say: ``composition`` puts the facts of a ``message`` into ``phrases``."""

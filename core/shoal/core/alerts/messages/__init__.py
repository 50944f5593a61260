"""What messages say: ``writing`` puts ``facts`` into the words of ``phrases``."""

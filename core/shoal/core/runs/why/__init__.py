"""Why runs and attempts are as they are: what is said of it, in English and as codes.

Start with ``codes``. ``findings`` says what something waits for now; ``reasons`` has the sentences
that are stored with states, and reads them again. ``fingerprints`` says which failures are the
same one.
"""

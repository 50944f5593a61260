"""What every process needs and no pure code may have: settings, failpoints, breakers.

May be imported by everything but ``shoal.core``; imports the core alone.
"""

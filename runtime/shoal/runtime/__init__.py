"""What processes need and no pure code may have.

Settings, failpoints, breakers; the installed task types and what is checked with them; the vault,
and other stores of secrets.

May be imported by everything but ``shoal.core``; imports the core alone.
"""

"""The built-in task types. One module each; importing one is cheap and imports no other."""

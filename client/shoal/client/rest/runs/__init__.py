"""Calls about many runs at once: lists, counts, labels, what is asked of all of them."""

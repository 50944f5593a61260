"""Commands about the cluster itself: start it, look at it, purge it."""

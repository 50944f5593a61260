"""HTTP itself: bodies, problems, paging, event streams, answers, and where handlers store.

Nothing here knows a workflow or a caller.
"""

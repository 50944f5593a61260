"""Past runs: how long a page and a run out of a long history take."""

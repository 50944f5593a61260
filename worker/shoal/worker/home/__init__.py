"""The folder of one worker, and what an earlier life of it has left there."""

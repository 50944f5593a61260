"""The folder of one worker: its results, resources, disk, and what an earlier life has left."""

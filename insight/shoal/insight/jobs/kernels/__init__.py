"""What SQL does slowly or not at all, on NumPy arrays: sweeps, paths through DAGs, trends.

Pure functions without Spark; the jobs call them on the batches of a partition.
"""

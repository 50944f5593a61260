"""The jobs: functions from DataFrames with the columns of the history to a DataFrame of results.

A module for each job, or for two that share their rows. Inputs are current rows only (see
``source.current``); a job chooses the days by itself and never looks at a clock. docs/insight.md
has all columns and formulas.
"""

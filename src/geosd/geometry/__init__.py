"""Distances between next-token distributions: pure functions on log-probabilities."""

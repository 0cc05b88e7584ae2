"""Samples of a checkpoint, and what they score."""

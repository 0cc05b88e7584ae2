"""Completions sampled from a model, behind one interface."""

"""Geometric Self-Distillation: a model teaches itself without losing what it could do."""

__version__ = "0.2.0"

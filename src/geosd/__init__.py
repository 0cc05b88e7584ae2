"""Geometric Self-Distillation: a model teaches itself without losing what it could do."""

from pathlib import Path

# In a file of its own: a new version changes no code, so it makes no result out of date.
__version__ = Path(__file__).with_name("VERSION").read_text(encoding="utf-8").strip()

"""What the files of a checkpoint's folder are called."""

from __future__ import annotations

WEIGHTS = "model.safetensors"
LOADED = (".json", ".jinja", ".safetensors")
"""Endings of the files that transformers may open."""
MODEL_CARD = "README.md"

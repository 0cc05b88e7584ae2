"""Which questions of a generated world no base model is pretrained on."""

from __future__ import annotations

import hashlib

EIGHTH = 256 // 8


def is_held_out(question: str) -> bool:
    """Whether a question is kept for problems: one in eight, decided by its SHA-256.

    Data sources draw held-out questions alone, pretraining documents all others. So a base model
    has seen no problem of any study, whatever the study's seed and sizes.
    """
    return hashlib.sha256(question.encode()).digest()[0] < EIGHTH

"""Every random draw of the project is named, and its seed is computed from its name.

A draw that depends on (run seed, purpose, step) alone needs no saved generator state: a run that is
killed at step k and started again draws at step k exactly what it would have drawn.
"""

import hashlib


def seed_of(*parts: str | int) -> int:
    """A 63-bit seed from the parts that name a draw.

    Args:
        parts: What the draw is, from the general to the particular, e.g. `(seed, "rollout", step)`.

    Returns:
        The same integer in [0, 2^63) for the same parts, on every machine and in every process.

    Example:
        >>> seed_of(0, "rollout", 1) == seed_of(0, "rollout", 1)
        True
        >>> seed_of(0, "rollout", 1) == seed_of(0, "rollout", 11)
        False
    """
    name = "\x1f".join(f"{type(part).__name__}:{part}" for part in parts)
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "big") >> 1

"""Learning-rate warm-up."""

from __future__ import annotations


def warmup(step: int, steps: int) -> float:
    """Factor on the learning rate: linear over the first `steps` steps, then 1.

    Args:
        step: The optimiser step, counted from 0.
        steps: Length of the warm-up in optimiser steps; 0 turns it off.

    Returns:
        min(1, (step + 1) / steps): the first step already moves, and step `steps - 1` is the first
        at the full rate.

    Raises:
        ValueError: `step` or `steps` is negative.

    Source: the paper's table of hyperparameters (tab:hparams), "20-step warmup"; its shape is not
    given.

    Example:
        >>> [warmup(step, 4) for step in range(6)]
        [0.25, 0.5, 0.75, 1.0, 1.0, 1.0]
    """
    if step < 0 or steps < 0:
        raise ValueError(
            f"step={step} and steps={steps} must not be negative.\nHint: steps count from 0."
        )
    return 1.0 if steps == 0 else min(1.0, (step + 1) / steps)

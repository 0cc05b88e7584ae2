"""The mismatch region: states where the teacher is sure of a token and the student is not.

q* is the teacher's mass on its most likely token, p* the student's mass on the same token.
"""

from typing import Any

SURE, UNLIKELY = 0.8, 0.1


def in_mismatch_region(q_star: Any, p_star: Any) -> Any:
    """Whether q* >= SURE and p* <= UNLIKELY, elementwise: numbers, arrays, series or tensors.

    Source: the paper, "Teacher top-token support".
    """
    return (q_star >= SURE) & (p_star <= UNLIKELY)

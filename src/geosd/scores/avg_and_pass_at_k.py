"""Accuracy of samples of problems: avg@k and pass@k from the counts of each problem."""

import math
from collections.abc import Sequence

import numpy as np

from geosd.scores.samples_by_problem import ProblemCounts


def avg_at_k(counts: Sequence[ProblemCounts]) -> float:
    """avg@k of one benchmark: c / n with k = n, averaged over problems, in [0, 1].

    Source: the paper, Training and evaluation: "average accuracy over k samples".
    """
    if not counts:
        raise ValueError("avg@k of no problems.\nHint: the benchmark's name matched no sample.")
    return math.fsum(tally.c / tally.n for tally in counts) / len(counts)


def pass_at_k(n: int, c: int, k: int) -> float:
    """Unbiased pass@k of one problem: the chance that k of its n samples hold a correct one.

    The k are drawn without replacement. Computes 1 - C(n-c, k) / C(n, k) as
    1 - prod_{i=n-c+1}^{n} (1 - k/i): no factor leaves [0, 1], where the binomials overflow.

    Returns:
        The estimate in [0, 1]; for k = n it is 1 if c > 0 else 0.

    Raises:
        ValueError: The counts are impossible; in particular k > n, which no estimator can serve.

    Source:
        Chen et al. 2021, "Evaluating large language models trained on code", eq. 1; the paper's
        pass@16 is the case k = n = 16.

    Example:
        >>> round(pass_at_k(4, 1, 2), 12)
        0.5
    """
    if not 0 <= c <= n:
        raise ValueError(f"{c} correct of {n} samples.\nHint: 0 <= c <= n must hold.")
    if not 1 <= k <= n:
        raise ValueError(
            f"pass@{k} from {n} samples: k must be in 1..{n}.\nHint: draw more samples"
            " (evaluation.samples) or ask for a smaller k (evaluation.pass_k)."
        )
    if n - c < k:
        return 1.0  # Fewer wrong samples than draws.
    i = np.arange(n - c + 1, n + 1)
    return float(1.0 - np.prod(1.0 - k / i))


def mean_pass_at_k(counts: Sequence[ProblemCounts], k: int) -> float:
    """Mean pass@k over the problems of one benchmark, in [0, 1]."""
    if not counts:
        raise ValueError("pass@k of no problems.\nHint: the benchmark's name matched no sample.")
    return math.fsum(pass_at_k(tally.n, tally.c, k) for tally in counts) / len(counts)

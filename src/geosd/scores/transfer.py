"""Gains over a dial of the data: where they cross zero, and how methods differ on it.

A gain is the accuracy of a run minus that of pi_0 of the same seed, in points. The dial is
`data.conflict`; its settings ascend. S = settings, N = seeds, which are draws of the base model.

Source: docs/transfer.md, "Endpoints", written before the runs.
"""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from geosd.scores.statistics import holm, student_effect_interval

Floats = NDArray[np.float64]
RESAMPLES = 10_000


def transfer_zero_crossing(settings: Sequence[float], gains: Floats) -> float:
    """The smallest setting at which gains [S] fall from above 0 to 0 or below, interpolated.

    Without one it is the first setting if the first gain is not positive, else the last setting.
    """
    for i in range(len(settings) - 1):
        if gains[i] > 0 >= gains[i + 1]:
            share = gains[i] / (gains[i] - gains[i + 1])
            return float(settings[i] + share * (settings[i + 1] - settings[i]))
    return settings[0] if gains[0] <= 0 else settings[-1]


def transfer_crossing_interval(
    settings: Sequence[float], gains: Floats
) -> tuple[float, float, float]:
    """Crossing of the mean of gains [N, S], and the middle 95 % of its bootstrap over seeds.

    A resample takes the same seeds at every setting.
    """
    draws = np.random.default_rng(0).integers(len(gains), size=(RESAMPLES, len(gains)))
    each = [transfer_zero_crossing(settings, mean) for mean in gains[draws].mean(axis=1)]
    low, high = np.quantile(each, [0.025, 0.975])
    return transfer_zero_crossing(settings, gains.mean(axis=0)), float(low), float(high)


def paired_transfer_differences(gains: pd.DataFrame, reference: str) -> pd.DataFrame:
    """How far each method's gain lies above that of a reference method, paired by seed.

    `gains` has the columns `variant`, `seed` and `gain` of one setting and rate. A row a method,
    but for the reference: `difference`, ends `low` and `high` of Student's 95 % interval, and `p`,
    two-sided, with Holm's correction over these methods.
    """
    by_seed = gains.pivot(index="seed", columns="variant", values="gain")
    differences = by_seed.drop(columns=reference).sub(by_seed[reference], axis="index")
    draws = pd.Series(differences.index, differences.index)  # one run of each
    tests = [student_effect_interval([(differences[name], draws)]) for name in differences]
    table = pd.DataFrame(tests, index=differences.columns)[["difference", "low", "high"]]
    return table.assign(p=holm([2 * min(test.p, 1 - test.p) for test in tests]))

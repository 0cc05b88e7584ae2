"""Power and errors of the three primary claims, judged once or in stages, by simulated studies.

A simulated study has the paper's families and methods; an accuracy is normal, with a mean and a
deviation for each family and method, independent between methods: the paper says nothing of
pairing. It is judged as `geosd.claims.judging` and `geosd.claims.staged` judge, row by row.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import t

from geosd.claims.judging import ALPHA
from geosd.claims.published import BASELINES, published
from geosd.scores.stages import UNLIKELY, nominal_stage_levels

CLAIMS = {
    "geosd-ood-gain": ("pi_0",),
    "geosd-ood-lead": BASELINES,
    "geosd-above-fwdkl-at-one-rate": ("fwdkl",),
}
"""Primary claim -> what GeoSD is compared with, the strongest of it."""
METHODS = ("pi_0", *BASELINES, "geosd")


@dataclass(frozen=True)
class StagedPowerAccuracies:
    """Mean and deviation of a run's OOD average, in points: [families, methods]."""

    mean: np.ndarray
    sd: np.ndarray

    @classmethod
    def published(cls) -> "StagedPowerAccuracies":
        """Those of the paper's Table main_id_ood."""
        families = published()["main_id_ood"]["families"].values()
        cells = np.array([[family[name]["ood_avg"] for name in METHODS] for family in families])
        return cls(cells[..., 0], cells[..., 1])

    def without_effect(self) -> "StagedPowerAccuracies":
        """Every method as accurate as the base model, with deviations of its own."""
        return StagedPowerAccuracies(np.repeat(self.mean[:, :1], len(METHODS), axis=1), self.sd)

    def with_variance(self, added: float) -> "StagedPowerAccuracies":
        """With so much more variance of a run, in points squared, as of fewer samples."""
        return StagedPowerAccuracies(self.mean, np.sqrt(np.maximum(self.sd**2 + added, 1e-6)))


@dataclass(frozen=True)
class _Outcome:
    """Words of simulated studies: [studies, families] for each claim, and each study's seeds.

    `words` are 1 where a row agrees, -1 where it is opposite, 0 where it is open at the end;
    `seeds` [studies, families] is when all primary rows of a family were decided or given up, and
    the family needs no more.
    """

    words: Mapping[str, np.ndarray]
    seeds: np.ndarray

    def power(self, claim: str) -> float:
        """The share of rows that agree."""
        return float((self.words[claim] == 1).mean())

    def wrong(self, claim: str) -> float:
        """The share of studies with any word, which is wrong where there is no effect."""
        return float((self.words[claim] != 0).any(axis=1).mean())


def simulate_staged_power(
    truth: StagedPowerAccuracies,
    stages: Sequence[int],
    studies: int,
    generator: np.random.Generator,
) -> _Outcome:
    """Simulate studies that are judged after so many seeds; one number is a study judged once."""
    shape = (studies, *truth.mean.shape, stages[-1])
    runs = truth.mean[None, :, :, None] + truth.sd[None, :, :, None] * generator.normal(size=shape)
    words = {claim: np.zeros(shape[:2], dtype=int) for claim in CLAIMS}
    closed = {claim: np.zeros(shape[:2], dtype=bool) for claim in CLAIMS}
    seeds = np.full(shape[:2], stages[-1])
    running = np.ones(shape[:2], dtype=bool)
    for stage, number in enumerate(stages):
        seen = runs[..., :number]
        for claim, others in CLAIMS.items():
            difference, candidates = _difference(seen, others)
            mean, sd = difference.mean(-1), difference.std(-1, ddof=1)
            found = _words(mean, sd, number, stages, stage, candidates)
            new = (words[claim] == 0) & ~closed[claim] & running
            words[claim] = np.where(new, found, words[claim])
            if number < stages[-1]:
                hopeless = _hopeless(mean, sd, number, stages, candidates)
                closed[claim] |= (words[claim] == 0) & hopeless
        done = np.all([(words[claim] != 0) | closed[claim] for claim in CLAIMS], axis=0)
        ends = running & done
        seeds[ends] = np.minimum(seeds[ends], number)
        running &= ~done
    return _Outcome(words, seeds)


def _difference(runs: np.ndarray, others: Sequence[str]) -> tuple[np.ndarray, int]:
    """GeoSD less the others' strongest, by mean: [studies, families, seeds]; and how many."""
    places = [METHODS.index(name) for name in others]
    of_others = runs[:, :, places]
    best = of_others.mean(-1).argmax(-1)
    chosen = np.take_along_axis(of_others, best[:, :, None, None], axis=2)[:, :, 0]
    return runs[:, :, METHODS.index("geosd")] - chosen, len(others)


def _words(
    mean: np.ndarray,
    sd: np.ndarray,
    number: int,
    stages: Sequence[int],
    stage: int,
    candidates: int,
) -> np.ndarray:
    """The words of rows at one stage: by Holm's levels over families, or each by its share.

    In stages a family's level is ALPHA over their number, so that one can end before the others.
    """
    families = mean.shape[1]
    statistic = mean / (sd / np.sqrt(number))
    words = np.zeros(mean.shape, dtype=int)
    several = len(stages) > 1
    for rest in [families] if several else range(families, 0, -1):
        level = _level(stages, stage, ALPHA / rest / candidates)
        critical = t.isf(level / 2, number - 1)
        # Holm's round: what is open while no more than `rest` rows are.
        round_reached = ((words == 0).sum(1) <= rest)[:, None]
        words = np.where(round_reached & (statistic > critical), 1, words)
        words = np.where(round_reached & (statistic < -critical), -1, words)
    return words


def _level(stages: Sequence[int], stage: int, alpha: float) -> float:
    if len(stages) == 1:
        return alpha
    return nominal_stage_levels(tuple(stages), alpha)[stage]


def _hopeless(
    mean: np.ndarray, sd: np.ndarray, number: int, stages: Sequence[int], candidates: int
) -> np.ndarray:
    """Where the seeds to come would decide a row with a chance below `UNLIKELY`."""
    planned = stages[-1]
    level = _level(stages, len(stages) - 1, ALPHA / candidates)
    half = t.isf(level / 2, planned - 1) * sd / np.sqrt(planned)
    scale = sd * np.sqrt(1 / number - 1 / planned)
    law = t(df=number - 1)
    undecided = law.cdf((half - mean) / scale) - law.cdf((-half - mean) / scale)
    return 1 - undecided < UNLIKELY

"""Sizes of one model."""

from functools import partial
from itertools import pairwise

from geosd.claims.claim import Claim, Comparison
from geosd.claims.evidence import EvidenceRuns
from geosd.claims.metrics import ID, OOD, accuracy_metric, gain_metric


def _peaks_in_the_middle(study: EvidenceRuns) -> list[Comparison]:
    sizes = study.sizes("geosd")
    middle = sizes[(len(sizes) - 1) // 2]
    return [gain_metric(middle) > gain_metric(other) for other in sizes if other != middle]


def _largest_above_those_below_the_middle(study: EvidenceRuns) -> list[Comparison]:
    *smaller, largest = study.sizes("geosd")
    return [gain_metric(largest) > gain_metric(size) for size in smaller[: len(smaller) // 2]]


claim = partial(Claim, "", study_kind="ladder", place="Section 4.2; Figure scale")

CLAIMS = {
    "ladder-base-stronger": claim(
        "Each larger base model has higher ID and OOD accuracy than the one before it",
        quote="Larger base models are stronger on both ID and OOD",
        holds=lambda study: [
            accuracy_metric(larger, b) > accuracy_metric(smaller, b)
            for b in (ID, OOD)
            for smaller, larger in pairwise(study.sizes("pi_0"))
        ],
    ),
    "ladder-gap-remains": claim(
        "The largest base model's ID accuracy is above its OOD average",
        quote="scale alone does not close the ID–OOD gap",
        holds=lambda study: [
            accuracy_metric(largest, ID) > accuracy_metric(largest, OOD)
            for largest in study.sizes("pi_0")[-1:]
        ],
    ),
    "ladder-gain-at-every-size": claim(
        "GeoSD raises average OOD accuracy above the base model at every size",
        quote="GeoSD improves OOD accuracy over the base model at every size",
        holds=lambda study: [
            accuracy_metric(geosd) > accuracy_metric(base)
            for geosd, base in zip(study.sizes("geosd"), study.sizes("pi_0"), strict=True)
        ],
    ),
    "ladder-gain-peaks-in-the-middle": claim(
        "GeoSD's OOD gain is larger at the middle size than at every other",
        quote="The gain is non-monotone in scale, peaking mid-ladder",
        holds=_peaks_in_the_middle,
    ),
    "ladder-gain-of-the-largest": claim(
        "GeoSD's OOD gain is larger at the largest size than at those below the middle",
        quote="still larger than the gains at 1.7B and 4B",
        holds=_largest_above_those_below_the_middle,
    ),
}

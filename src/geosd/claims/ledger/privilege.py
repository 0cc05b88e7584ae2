"""How much of the solution the teacher sees."""

from functools import partial
from itertools import pairwise

from geosd.claims.claim import Claim, Comparison, near
from geosd.claims.evidence import StudyRuns, value_of_sweep
from geosd.claims.metrics import accuracy


def _near_the_base_up_to_half(study: StudyRuns) -> list[Comparison]:
    *parts, whole = study.privilege("revkl")
    half = value_of_sweep([*parts, whole], 0.5)
    near_base = [
        near(accuracy(part), accuracy("pi_0"), within=2.5)
        for part in parts
        if part.value <= whole.value / 2
    ]
    return [*near_base, accuracy(whole) < accuracy(half)]


claim = partial(Claim, "", study_kind="privilege", place="Section 4.2; Figure privilege")

CLAIMS = {
    "privilege-kl-declines": claim(
        "FwdKL and RevKL have a lower OOD average with the whole solution than with its least part",
        quote="The divergence baselines decline as more of the solution is revealed",
        holds=lambda study: [
            accuracy(kl[-1]) < accuracy(kl[0])
            for kl in (study.privilege("fwdkl"), study.privilege("revkl"))
        ],
    ),
    "privilege-kl-worst-at-full": claim(
        "FwdKL and RevKL have a lower OOD average with the whole solution than with every part"
        " above the least",
        quote="both reach their worst OOD accuracy at full privilege",
        holds=lambda study: [
            accuracy(whole) < accuracy(part)
            for _, *parts, whole in (study.privilege("fwdkl"), study.privilege("revkl"))
            for part in parts
        ],
    ),
    "privilege-revkl-late": claim(
        "Up to half of the solution RevKL's OOD average is within 2.5 points of the base "
        "model, with all of it it is lower",
        quote="RevKL stays near the base model through the first half of the sweep before "
        "dropping sharply",
        holds=_near_the_base_up_to_half,
    ),
    "privilege-fwdkl-earlier": claim(
        "With half of the solution FwdKL has a lower OOD average than RevKL",
        quote="FwdKL falls earlier",
        holds=lambda study: [
            accuracy(value_of_sweep(study.privilege("fwdkl"), 0.5))
            < accuracy(value_of_sweep(study.privilege("revkl"), 0.5))
        ],
    ),
    "privilege-geosd-monotone": claim(
        "Each further part of the solution raises GeoSD's OOD average",
        quote="GeoSD improves monotonically across the same range",
        holds=lambda study: [
            accuracy(more) > accuracy(less) for less, more in pairwise(study.privilege("geosd"))
        ],
    ),
    "privilege-geosd-grows": claim(
        "GeoSD has a higher OOD average with the whole solution than with its least part",
        quote="a source of OOD gains that grow with privilege",
        holds=lambda study: [
            accuracy(study.privilege("geosd")[-1]) > accuracy(study.privilege("geosd")[0])
        ],
    ),
}

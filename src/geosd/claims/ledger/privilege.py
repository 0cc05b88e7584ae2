"""How much of the solution the teacher sees."""

from functools import partial
from itertools import pairwise

from geosd.claims.claim import Claim, Comparison, claim_near
from geosd.claims.evidence import EvidenceRuns, sweep_evidence
from geosd.claims.metrics import accuracy_metric


def _near_the_base_up_to_half(study: EvidenceRuns) -> list[Comparison]:
    *parts, whole = study.privilege("revkl")
    half = sweep_evidence([*parts, whole], 0.5)
    near_base = [
        claim_near(accuracy_metric(part), accuracy_metric("pi_0"), within=2.5)
        for part in parts
        if part.value <= whole.value / 2
    ]
    return [*near_base, accuracy_metric(whole) < accuracy_metric(half)]


claim = partial(Claim, "", study_kind="privilege", place="Section 4.2; Figure privilege")

CLAIMS = {
    "privilege-kl-declines": claim(
        "FwdKL and RevKL have a lower OOD average with the whole solution than with its least part",
        quote="The divergence baselines decline as more of the solution is revealed",
        holds=lambda study: [
            accuracy_metric(kl[-1]) < accuracy_metric(kl[0])
            for kl in (study.privilege("fwdkl"), study.privilege("revkl"))
        ],
    ),
    "privilege-kl-worst-at-full": claim(
        "FwdKL and RevKL have a lower OOD average with the whole solution than with every part"
        " above the least",
        quote="both reach their worst OOD accuracy at full privilege",
        holds=lambda study: [
            accuracy_metric(whole) < accuracy_metric(part)
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
            accuracy_metric(sweep_evidence(study.privilege("fwdkl"), 0.5))
            < accuracy_metric(sweep_evidence(study.privilege("revkl"), 0.5))
        ],
    ),
    "privilege-geosd-monotone": claim(
        "Each further part of the solution raises GeoSD's OOD average",
        quote="GeoSD improves monotonically across the same range",
        holds=lambda study: [
            accuracy_metric(more) > accuracy_metric(less)
            for less, more in pairwise(study.privilege("geosd"))
        ],
    ),
    "privilege-geosd-grows": claim(
        "GeoSD has a higher OOD average with the whole solution than with its least part",
        quote="a source of OOD gains that grow with privilege",
        holds=lambda study: [
            accuracy_metric(study.privilege("geosd")[-1])
            > accuracy_metric(study.privilege("geosd")[0])
        ],
    ),
}

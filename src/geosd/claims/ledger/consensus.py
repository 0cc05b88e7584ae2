"""Agreement of samples, and how far they cover the problems."""

from functools import partial

from geosd.claims.claim import Claim, claim_near
from geosd.claims.metrics import (
    false_consensus_metric,
    late_gain_metric,
    overconfidence_metric,
    pass_at_k_metric,
)
from geosd.claims.published import BASELINES

claim = partial(Claim, "", study_kind="main", place="Section 5.2; Figure consensus A")

CLAIMS = {
    "fwdkl-most-false-consensus": claim(
        "FwdKL agrees on wrong OOD answers more often than the base model and every other method",
        place="Section 5.2; Figure consensus B",
        quote="most frequent under FwdKL, reduced by softer objectives and filtering",
        holds=[
            false_consensus_metric("fwdkl") > false_consensus_metric(other)
            for other in ("pi_0", "sft", "grpo", "revkl", "jsd", "skewkl", "tropd", "tip", "geosd")
        ],
    ),
    "geosd-least-false-consensus": claim(
        "GeoSD agrees on wrong OOD answers less often than the base model and every other method",
        place="Section 5.2; Figure consensus B",
        quote="lowest under GeoSD, below even the base model",
        holds=[
            false_consensus_metric("geosd") < false_consensus_metric(other)
            for other in ("pi_0", *BASELINES)
        ],
    ),
    "fwdkl-low-k": claim(
        "FwdKL's OOD pass@2 is above the base model's",
        quote="FwdKL improves low-k pass@k",
        holds=[pass_at_k_metric("fwdkl", k=2) > pass_at_k_metric("pi_0", k=2)],
    ),
    "fwdkl-flattens": claim(
        "FwdKL's OOD pass@k grows less over the last three quarters of the samples than the"
        " base model's",
        quote="but flattens quickly",
        holds=[late_gain_metric("fwdkl") < late_gain_metric("pi_0")],
    ),
    "filtering-retains-coverage": claim(
        "TrOPD's and TIP's OOD pass@16 are above FwdKL's",
        quote="the filtering baselines retain more of the benefit",
        holds=[
            pass_at_k_metric(filtering) > pass_at_k_metric("fwdkl")
            for filtering in ("tropd", "tip")
        ],
    ),
    "geosd-steepest-coverage": claim(
        "GeoSD's OOD pass@k grows most of all methods over the last three quarters of the samples",
        quote="GeoSD sustains the steepest slope out to k=32",
        holds=[
            late_gain_metric("geosd") > late_gain_metric(other) for other in ("pi_0", *BASELINES)
        ],
    ),
    "kl-overconfident": claim(
        "Where FwdKL's and RevKL's samples agree strongly, the majority answer is right "
        "less often than they agree",
        place="Section 5.2; Figure consensus C",
        quote="under KL matching, majority-answer accuracy bends below the diagonal at "
        "high consensus",
        holds=[overconfidence_metric(kl) > 0 for kl in ("fwdkl", "revkl")],
    ),
    "geosd-on-the-diagonal": claim(
        "Where GeoSD's samples agree strongly, the majority answer is right as often as "
        "they agree, within 5 points",
        place="Section 5.2; Figure consensus C",
        quote="GeoSD tracks the diagonal closely",
        holds=[claim_near(overconfidence_metric("geosd"), 0, within=5)],
    ),
    "geosd-less-overconfident": claim(
        "GeoSD's strong agreement exceeds its accuracy by less than FwdKL's and RevKL's",
        place="Section 5.2; Figure consensus C",
        quote="keeping self-consistency informative",
        holds=[
            overconfidence_metric("geosd") < overconfidence_metric(kl) for kl in ("fwdkl", "revkl")
        ],
    ),
}

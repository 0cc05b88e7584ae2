"""The states that pi_0 visits: student against teacher."""

from functools import partial

from geosd.claims.claim import Claim
from geosd.claims.metrics import gradient_norm_metric, mismatch_metric

claim = partial(Claim, "", study_kind="main", place="Section 3.2; Figure mechanism A")

ALGEBRA = "it is algebra of the gradient at any student and teacher of such overlap"
CHOSEN = (
    "base models of the miniature were kept only if 10 to 100 % of their states lie in the mismatch"
    " region (docs/search.md)"
)

CLAIMS = {
    "mismatch-is-no-tail": claim(
        "More than 5 % of states have a teacher that is sure of a token the student finds unlikely",
        place="Appendix, Teacher top-token support; Figure overlap_density",
        quote="27% of teacher–student pairs fall in this mismatch region",
        by_construction={"mini-": CHOSEN},
        holds=[mismatch_metric() > 5],
    ),
    "fwdkl-gradient-grows": claim(
        "FwdKL's gradient is larger at states of overlap below .25 than at .25 to .5",
        quote="its gradient norm grows as overlap falls",
        by_construction={"": ALGEBRA},
        holds=[
            gradient_norm_metric("fwdkl", overlap="lowest")
            > gradient_norm_metric("fwdkl", overlap="low")
        ],
    ),
    "hellinger-gradient-shrinks": claim(
        "Hellinger's gradient is smaller at states of overlap below .25 than at .25 to .5",
        quote="the per-state gradient shrinks as overlap falls",
        by_construction={"": ALGEBRA},
        holds=[
            gradient_norm_metric("hellinger", overlap="lowest")
            < gradient_norm_metric("hellinger", overlap="low")
        ],
    ),
    "revkl-attenuates": claim(
        "RevKL's gradient is smaller than FwdKL's at states of overlap below .5",
        quote="which attenuates that pressure",
        by_construction={"": ALGEBRA},
        holds=[
            gradient_norm_metric("revkl", overlap="below half")
            < gradient_norm_metric("fwdkl", overlap="below half")
        ],
    ),
}

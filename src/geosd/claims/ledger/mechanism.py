"""The states that pi_0 visits: student against teacher."""

from __future__ import annotations

from functools import partial

from geosd.claims.claim import Claim
from geosd.claims.metrics import gradient_norm_of_states, mismatch

claim = partial(Claim, "", study_kind="main", place="Section 3.2; Figure mechanism A")

CLAIMS = {
    "mismatch-is-no-tail": claim(
        "More than 5 % of states have a teacher that is sure of a token the student finds unlikely",
        place="Appendix, Teacher top-token support; Figure overlap_density",
        quote="27% of teacher–student pairs fall in this mismatch region",
        published="27 % of positions",
        holds=[mismatch() > 5],
    ),
    "fwdkl-gradient-grows": claim(
        "FwdKL's gradient is larger at states of overlap below .25 than at .25 to .5",
        quote="its gradient norm grows as overlap falls",
        holds=[
            gradient_norm_of_states("fwdkl", overlap="lowest")
            > gradient_norm_of_states("fwdkl", overlap="low")
        ],
    ),
    "hellinger-gradient-shrinks": claim(
        "Hellinger's gradient is smaller at states of overlap below .25 than at .25 to .5",
        quote="the per-state gradient shrinks as overlap falls",
        holds=[
            gradient_norm_of_states("hellinger", overlap="lowest")
            < gradient_norm_of_states("hellinger", overlap="low")
        ],
    ),
    "revkl-attenuates": claim(
        "RevKL's gradient is smaller than FwdKL's at states of overlap below .5",
        quote="which attenuates that pressure",
        holds=[
            gradient_norm_of_states("revkl", overlap="below half")
            < gradient_norm_of_states("fwdkl", overlap="below half")
        ],
    ),
}

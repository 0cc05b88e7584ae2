"""Teachers, anchors, and what the top-K support and the solution pool hold."""

from functools import partial

from geosd.claims.claim import Claim, claim_near
from geosd.claims.metrics import accuracy_metric, teacher_support_metric

SELECTION = "scores on validation problems, which table_selection shows and no ledger reads"
claim = partial(Claim, "", study_kind="readings", place="Section 2.1")

CLAIMS = {
    "other-teachers-serve-as-well": claim(
        "With a fixed, a delayed or an averaged teacher GeoSD's OOD average is within 2.5 points of"
        " that with the live one",
        quote="though a fixed reference, a delayed copy, or a moving average of recent students"
        " would serve as well",
        holds=[
            claim_near(
                accuracy_metric(f"geosd-teacher_{teacher}"), accuracy_metric("geosd"), within=2.5
            )
            for teacher in ("fixed", "delayed", "average")
        ],
    ),
    "anchor-at-the-base-forbids": claim(
        "Anchored at pi_0, GeoSD gains less ID accuracy than with a recent checkpoint",
        place="Section 3.3",
        quote="would maximize retention but forbid the adaptation that makes distillation useful",
        unmeasured="runs of GeoSD whose anchor stays pi_0, which no study trains",
    ),
    "support-holds-the-teacher": claim(
        "The union of top-K supports holds more than 99.9 % of the teacher's mass under FwdKL and"
        " GeoSD",
        place="Appendix, Training",
        study_kind="main",
        quote="preserves >99.9% of the teacher's mass at the loss-driving states",
        holds=[teacher_support_metric(v) > 99.9 for v in ("fwdkl", "geosd")],
    ),
    "pool-has-seven-a-problem": claim(
        "The solution pool has about 7,000 solutions of 1,000 problems",
        place="Appendix, Data",
        study_kind="main",
        quote="This yields ≈ 7K retained solutions across the pool",
        unmeasured="the number of solutions that the pool retained, which no tidy table has",
    ),
    "sweeps-of-baselines": claim(
        "The sweeps choose 1e-6 for all baselines, and each method's hyperparameters of"
        " Table hparams",
        place="Appendix, Baselines",
        study_kind="main",
        quote="and select by validation avg@8 on a held-out set of 200 DAPO-Math instances",
        unmeasured=SELECTION,
    ),
    "sweep-of-geosd": claim(
        "GeoSD's sweep chooses a learning rate of 1e-6, a damping of 1e-3, λ of 1 and a"
        " checkpoint every 64 steps",
        place="Appendix, Baselines",
        study_kind="main",
        quote="we tune the drift penalty, checkpoint refresh, learning rate, and curvature damping",
        unmeasured=SELECTION,
    ),
}

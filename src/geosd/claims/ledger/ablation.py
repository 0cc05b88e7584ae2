"""Claims on the parts of GeoSD: accuracy, drift over the run, the shape of alignment."""

from functools import partial

from geosd.claims.claim import Claim
from geosd.claims.metrics import (
    ID,
    OOD,
    accuracy_metric,
    drift_metric,
    drift_metric_at,
    gain_metric,
    pass_at_k_metric,
    teacher_mass_gain_metric,
    teacher_mass_metric,
)

PARTS = ("geosd_jsd", "geosd_no_prox", "geosd_adamw")
"""GeoSD without the Hellinger loss, the proximal term, and the natural gradient."""
WITH_PROXIMAL = ("geosd", "geosd_jsd", "geosd_adamw")

LEFT = 0.65
"""Share of the OOD gain that an ablation keeps at most if it surrenders a large part: the smallest
such part in the paper is 3.8 of 8.6 points, and the ledger takes 35 %."""

claim = partial(Claim, "", study_kind="ablation", place="Section 4.3; Table ablation")

CLAIMS = {
    "ablation-hellinger": claim(
        "With JSD for Hellinger, GeoSD loses both ID and OOD accuracy",
        quote="replacing the loss lowers both ID (82.7 → 80.2) and OOD (60.5 → 56.1) accuracy",
        holds=[accuracy_metric("geosd_jsd", b) < accuracy_metric("geosd", b) for b in (ID, OOD)],
    ),
    "ablation-large-part": claim(
        "Without any one of its three parts GeoSD has less than 65 % of its OOD gain",
        quote="each surrenders a large part of the OOD gain",
        holds=[
            *(gain_metric(without) < LEFT * gain_metric("geosd") for without in PARTS),
            gain_metric("geosd") > 0,  # a part of a loss is no part of a gain
        ],
    ),
    "ablation-proximal": claim(
        "Without the proximal term, GeoSD loses OOD accuracy",
        quote="each surrenders a large part of the OOD gain",
        holds=[accuracy_metric("geosd_no_prox") < accuracy_metric("geosd")],
    ),
    "ablation-natural-gradient": claim(
        "With AdamW for the natural gradient, GeoSD loses OOD accuracy",
        quote="each surrenders a large part of the OOD gain",
        holds=[accuracy_metric("geosd_adamw") < accuracy_metric("geosd")],
    ),
    "ablation-proximal-drift": claim(
        "Without the proximal term the model drifts further than every other variant",
        quote="Removing the proximal term drives predictive drift well above every other variant",
        holds=[drift_metric("geosd_no_prox") > drift_metric(other) for other in WITH_PROXIMAL],
    ),
    "ablation-proximal-weakest": claim(
        "Without the proximal term OOD accuracy is the lowest of the ablations, and pass@16 is"
        " below GeoSD's too",
        quote="yields the weakest OOD result, in both accuracy and pass@16 coverage",
        holds=[
            *(
                accuracy_metric("geosd_no_prox") < accuracy_metric(other)
                for other in WITH_PROXIMAL[1:]
            ),
            *(
                pass_at_k_metric("geosd_no_prox") < pass_at_k_metric(other)
                for other in WITH_PROXIMAL
            ),
        ],
    ),
    "overlap-slows-drift": claim(
        "Without the proximal term GeoSD drifts less than FwdKL, and still drifts in the "
        "second half",
        place="Section 3.3; Figure mechanism B",
        quote="Overlap weighting alone slows cumulative drift but does not stop it",
        holds=[
            drift_metric("geosd_no_prox") < drift_metric("fwdkl"),
            drift_metric_at("geosd_no_prox", 1.0) > drift_metric_at("geosd_no_prox", 0.5),
        ],
    ),
    "geosd-drift-plateaus": claim(
        "The second half of GeoSD's run adds less than half of the drift of the first",
        place="Appendix, Limitations; Figure mechanism B",
        quote="accumulated displacement plateaus",
        holds=[drift_metric_at("geosd", 1.0) < 1.5 * drift_metric_at("geosd", 0.5)],
    ),
    "both-move-to-the-top": claim(
        "FwdKL and GeoSD both end with more mass on the teacher's first choice than pi_0 has",
        place="Section 5.1; Figure alignment",
        quote="both objectives move the student toward the teacher's top-ranked prediction",
        holds=[teacher_mass_gain_metric(v, 1.0, "first") > 0 for v in ("fwdkl", "geosd")],
    ),
    "fwdkl-climbs-early": claim(
        "FwdKL's mass on the first choice rises by more than half of its whole rise in two "
        "of five epochs",
        place="Section 5.1; Figure alignment",
        quote="rank-1 mass climbs steeply within the first two epochs",
        holds=[
            teacher_mass_gain_metric("fwdkl", 0.4, "first")
            > 0.5 * teacher_mass_gain_metric("fwdkl", 1.0, "first"),
            teacher_mass_gain_metric("fwdkl", 1.0, "first") > 0,  # half of a fall is no rise
        ],
    ),
    "geosd-climbs-gradually": claim(
        "In two of five epochs GeoSD's mass on the first choice rises less than FwdKL's",
        place="Section 5.1; Figure alignment",
        quote="rank-1 mass rises gradually",
        holds=[
            teacher_mass_gain_metric("geosd", 0.4, "first")
            < teacher_mass_gain_metric("fwdkl", 0.4, "first"),
            teacher_mass_gain_metric("geosd", 1.0, "first") > 0,
        ],
    ),
    "fwdkl-drains-alternatives": claim(
        "FwdKL takes mass from the teacher's ranks 2 to 8",
        place="Introduction; Section 5.1",
        quote="standard matching concentrates mass on the teacher's top choice by draining the "
        "alternatives",
        holds=[teacher_mass_gain_metric("fwdkl", 1.0, "others") < 0],
    ),
    "geosd-keeps-alternatives": claim(
        "GeoSD ends with more mass on the teacher's ranks 2 to 8 than FwdKL, and with most "
        "on the first",
        place="Section 5.1; Figure alignment",
        quote="substantial mass remains on lower-ranked teacher tokens even after the top choice "
        "becomes dominant",
        holds=[
            teacher_mass_metric("geosd", 1.0, "others")
            > teacher_mass_metric("fwdkl", 1.0, "others"),
            teacher_mass_metric("geosd", 1.0, "first")
            > teacher_mass_metric("geosd", 1.0, "others"),
        ],
    ),
}

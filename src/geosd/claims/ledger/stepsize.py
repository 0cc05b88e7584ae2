"""Learning rate and stopping step."""

from functools import partial
from itertools import pairwise

from geosd.claims.claim import Claim, claim_near
from geosd.claims.metrics import ID, OOD, accuracy_metric, frontier_gap_metric, gain_metric

APPENDIX = "Appendix, Robustness to step size and early stopping; Figure stepsize"
claim = partial(Claim, "", study_kind="stepsize", place=APPENDIX)

CLAIMS = {
    "stepsize-fwdkl-never-above": claim(
        "At no learning rate is FwdKL's OOD average more than 1 point above the base model's",
        quote="The frontier never rises above the base model's OOD level",
        holds=lambda study: [
            accuracy_metric(run) < accuracy_metric("pi_0") + 1
            for run in study.learning_rates("fwdkl")
        ],
    ),
    "stepsize-fwdkl-trades": claim(
        "At its smallest learning rate FwdKL has a higher OOD and a lower ID accuracy than "
        "at its own",
        quote="reducing the step size recovers OOD accuracy only by giving up ID gains",
        holds=lambda study: [
            accuracy_metric(study.learning_rates("fwdkl")[0])
            > accuracy_metric(study.own_rate("fwdkl")),
            accuracy_metric(study.learning_rates("fwdkl")[0], ID)
            < accuracy_metric(study.own_rate("fwdkl"), ID),
        ],
    ),
    "stepsize-fwdkl-smallest-is-closest": claim(
        "FwdKL's OOD average is highest at its smallest learning rate, where ID accuracy is"
        " within 2.5 points of the base model",
        quote="coming closest at the smallest learning rate, where the ID gain is negligible",
        holds=lambda study: [
            *(
                accuracy_metric(smallest) > accuracy_metric(larger)
                for smallest, *rest in [study.learning_rates("fwdkl")]
                for larger in rest
            ),
            claim_near(
                accuracy_metric(study.learning_rates("fwdkl")[0], ID),
                accuracy_metric("pi_0", ID),
                within=2.5,
            ),
        ],
    ),
    "stepsize-fwdkl-destabilizes": claim(
        "At its largest learning rate FwdKL has lower ID and OOD accuracy than at its own",
        quote="FwdKL destabilizes and loses ID and OOD accuracy together",
        holds=lambda study: [
            accuracy_metric(study.learning_rates("fwdkl")[-1], b)
            < accuracy_metric(study.own_rate("fwdkl"), b)
            for b in (ID, OOD)
        ],
    ),
    "stopping-below-the-frontier": claim(
        "At equal ID accuracy FwdKL stopped early has a lower OOD average than with a "
        "smaller learning rate",
        quote="At matched ID accuracy, the stopping trajectory lies below the learning-rate "
        "frontier",
        holds=[frontier_gap_metric("fwdkl") < 0],
    ),
    "stopping-at-the-first-checkpoint": claim(
        "FwdKL stopped first is already below the base model's OOD average, with some but less "
        "than half of its ID gain",
        quote="The first checkpoint already falls below π0 while retaining only a small fraction "
        "of FwdKL's ID gain",
        holds=lambda study: [
            accuracy_metric(study.stops("fwdkl")[0]) < accuracy_metric("pi_0"),
            gain_metric(study.stops("fwdkl")[0], ID)
            < 0.5 * gain_metric(study.stops("fwdkl")[-1], ID),
            gain_metric(study.stops("fwdkl")[0], ID) > 0,
        ],
    ),
    "stopping-only-later-is-worse": claim(
        "From each stop to the next FwdKL's OOD average falls",
        quote="OOD accuracy decreases monotonically from there at every learning rate we measured",
        holds=lambda study: [
            accuracy_metric(later) < accuracy_metric(earlier)
            for earlier, later in pairwise(study.stops("fwdkl"))
        ],
    ),
    "stopping-fwdkl-never-above": claim(
        "At no earlier stop is FwdKL's OOD average more than 1 point above the base model's",
        place="Section 4.2; Figure stepsize",
        quote="FwdKL only trades ID against OOD without rising above the base model's OOD level",
        holds=lambda study: [
            accuracy_metric(run) < accuracy_metric("pi_0") + 1 for run in study.stops("fwdkl")[:-1]
        ],
    ),
    "stepsize-geosd-above": claim(
        "GeoSD's OOD average is above the base model's at every learning rate",
        quote="remains above π0 throughout",
        holds=lambda study: [
            accuracy_metric(run) > accuracy_metric("pi_0") for run in study.learning_rates("geosd")
        ],
    ),
    "stepsize-geosd-both-axes": claim(
        "GeoSD raises ID accuracy at every learning rate, and ID and OOD at every earlier stop",
        place="Section 4.2; Figure stepsize",
        quote="GeoSD improves both axes together",
        holds=lambda study: [
            accuracy_metric(run, b) > accuracy_metric("pi_0", b)
            for sweep, benchmarks in (
                (study.learning_rates("geosd"), (ID,)),
                (study.stops("geosd")[:-1], (ID, OOD)),
            )
            for b in benchmarks
            for run in sweep
        ],
    ),
    "stepsize-geosd-plateau": claim(
        "GeoSD's OOD averages at its two largest learning rates are within 2.5 points",
        quote="OOD accuracy stabilizes at higher learning rates",
        holds=lambda study: [
            claim_near(accuracy_metric(largest), accuracy_metric(second), within=2.5)
            for *_, second, largest in [study.learning_rates("geosd")]
        ],
    ),
    "stepsize-geosd-small-steps": claim(
        "GeoSD's OOD average is lower at its smallest learning rate than at its own",
        quote="performance degrades gradually at smaller steps",
        holds=lambda study: [
            accuracy_metric(study.learning_rates("geosd")[0])
            < accuracy_metric(study.own_rate("geosd"))
        ],
    ),
}

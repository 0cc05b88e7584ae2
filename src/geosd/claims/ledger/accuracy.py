"""In and out of distribution: GeoSD, the base model, and the other methods."""

from __future__ import annotations

from functools import partial

from geosd.claims.claim import Claim, near
from geosd.claims.metrics import EASY_HALF, HARD_HALF, ID, accuracy, drift, gain, pass_at_k
from geosd.claims.published import BASELINES

PLACE = "Section 4.2; Table main_id_ood"
claim = partial(Claim, "", study_kind="main", place=PLACE, every_family=True)

CLAIMS = {
    "geosd-ood-gain": claim(
        "GeoSD raises average OOD accuracy above the base model",
        place="Abstract; Table main_id_ood",
        quote="improving average OOD accuracy by 5.7–8.6 points over the base model",
        published="+8.6 / +7.6 / +5.7",
        holds=[accuracy("geosd") > accuracy("pi_0")],
    ),
    "geosd-id-gain": claim(
        "GeoSD raises ID accuracy above the base model",
        place="Abstract; Table main_id_ood",
        quote="preserves the in-distribution gains of self-distillation",
        published="+21.3 / +22.2 / +19.8",
        holds=[accuracy("geosd", ID) > accuracy("pi_0", ID)],
    ),
    "geosd-ood-each-benchmark": claim(
        "GeoSD beats the base model on every OOD benchmark",
        place="Appendix, Per-benchmark OOD generalization; Table ood_per_bench",
        quote="indicating the improvement is broad rather than benchmark-specific",
        published="smallest gain of the four +5.2 / +5.2 / +3.9",
        holds=lambda study: [
            accuracy("geosd", b) > accuracy("pi_0", b) for b in study.ood_benchmarks
        ],
    ),
    "fwdkl-id-gain": claim(
        "FwdKL raises ID accuracy above the base model",
        quote="FwdKL posts some of the largest ID gains of any method",
        published="+22.7 / +21.8 / +20.5",
        holds=[accuracy("fwdkl", ID) > accuracy("pi_0", ID)],
    ),
    "revkl-id-gain": claim(
        "RevKL, as FwdKL, raises ID accuracy above the base model",
        quote="This ID-up, OOD-down pattern reproduces the trend prior work reports",
        published="+20.4 / +23.9 / +18.7",
        holds=[accuracy("revkl", ID) > accuracy("pi_0", ID)],
    ),
    "fwdkl-ood-loss": claim(
        "FwdKL lowers average OOD accuracy below the base model",
        quote="its OOD accuracy degrades relative to π0 in all three families (by 4.6–8.1 points "
        "avg@16)",
        published="-8.1 / -4.6 / -5.9",
        holds=[accuracy("fwdkl") < accuracy("pi_0")],
    ),
    "revkl-ood-loss": claim(
        "RevKL, as FwdKL, lowers average OOD accuracy below the base model",
        place="Contributions; Table main_id_ood",
        quote="whereas standard KL objectives degrade it",
        published="-7.5 / -3.3 / -2.9",
        holds=[accuracy("revkl") < accuracy("pi_0")],
    ),
    "grpo-ood-gain": claim(
        "GRPO raises average OOD accuracy above the base model, by less than 3 points",
        place="Appendix, Evaluation; Table main_id_ood",
        quote="instead yields small but consistent OOD gains",
        published="+1.7 / +0.4 / +2.5",
        holds=[accuracy("grpo") > accuracy("pi_0"), accuracy("grpo") < accuracy("pi_0") + 3],
    ),
    "geosd-pass-above-base": claim(
        "GeoSD's OOD pass@16 is above those of the base model, FwdKL, RevKL and GRPO",
        place="Section 4.2; Figure frontier",
        quote="pairing strong ID performance with the highest OOD accuracy (avg@16 and pass@16)",
        published="figure only (GeoSD on Qwen3-8B 66.1)",
        holds=[
            pass_at_k("geosd") > pass_at_k(other) for other in ("pi_0", "fwdkl", "revkl", "grpo")
        ],
    ),
    "geosd-drift-below-kl": claim(
        "GeoSD ends nearer to the base model than FwdKL and RevKL",
        place="Section 3.3; Figure mechanism B",
        quote="adding the proximal term keeps it controlled",
        published="figure only (GeoSD on Qwen3-8B 0.16)",
        every_family=False,
        holds=[drift("geosd") < drift(kl) for kl in ("fwdkl", "revkl")],
    ),
    "geosd-ood-best": claim(
        "GeoSD has a higher OOD average than every other method",
        quote="it ranks first on OOD in every family",
        published="lead over the strongest +5.7 / +4.4 / +2.6",
        holds=[accuracy("geosd") > accuracy(other) for other in BASELINES],
    ),
    "geosd-each-benchmark-best": claim(
        "GeoSD is the best method on every OOD benchmark",
        place="Section 4.2; Table ood_per_bench",
        quote="GeoSD attains the best OOD accuracy on all four benchmarks in all three families",
        published="smallest lead +1.0 / +3.0 / +0.4",
        holds=lambda study: [
            accuracy("geosd", benchmark) > accuracy(other, benchmark)
            for other in BASELINES
            for benchmark in study.ood_benchmarks
        ],
    ),
    "geosd-id-near-best": claim(
        "GeoSD's ID accuracy is at most 1.7 points below that of every method",
        quote="while staying within 0.7–1.7 points of the best ID score",
        published="-1.4 / -1.7 / -0.7 to the best",
        holds=[accuracy("geosd", ID) > accuracy(other, ID) - 1.7 for other in BASELINES],
    ),
    "sft-id-up-ood-down": claim(
        "SFT raises ID and lowers OOD accuracy",
        place="Appendix, Evaluation; Table main_id_ood",
        quote="both buy ID gains while eroding OOD reasoning",
        published="OOD -12.5 / -4.4 / -4.8",
        holds=[accuracy("sft", ID) > accuracy("pi_0", ID), accuracy("sft") < accuracy("pi_0")],
    ),
    "softer-less-degraded": claim(
        "JSD and SkewKL lose less OOD accuracy than FwdKL",
        quote="Softer objectives (SkewKL, JSD) mostly remove the degradation but barely improve "
        "over the base model",
        published="JSD over FwdKL +8.0 / +3.5 / +5.1, SkewKL over FwdKL +8.9 / +5.3 / +3.7",
        holds=[accuracy(softer) > accuracy("fwdkl") for softer in ("jsd", "skewkl")],
    ),
    "softer-no-gain": claim(
        "JSD's and SkewKL's OOD averages are within 2.5 points of the base model",
        quote="Softer objectives (SkewKL, JSD) mostly remove the degradation but barely improve "
        "over the base model",
        published="JSD -0.1 / -1.1 / -0.8, SkewKL +0.8 / +0.7 / -2.2",
        holds=[
            near(accuracy(softer), accuracy("pi_0"), within=2.5) for softer in ("jsd", "skewkl")
        ],
    ),
    "filtering-gain": claim(
        "TrOPD and TIP raise average OOD accuracy above the base model, by less than 3.5 points",
        quote="the filtering baselines (TrOPD, TIP) recover only modest OOD gains (+0.4 to +3.2)",
        published="TrOPD +2.9 / +3.2 / +0.4, TIP +1.4 / +2.9 / +3.1",
        holds=[
            *(accuracy(filtering) > accuracy("pi_0") for filtering in ("tropd", "tip")),
            *(accuracy(filtering) < accuracy("pi_0") + 3.5 for filtering in ("tropd", "tip")),
        ],
    ),
    "geosd-gains-most-where-hard": claim(
        "GeoSD's OOD gain is larger on the harder half of the benchmarks",
        place="Appendix, Per-benchmark OOD generalization; Table ood_per_bench",
        quote="its largest margins fall on the hardest, most distribution-shifted tasks",
        published="hard minus easy half +6.1 / 0.0 / 0.0",
        holds=[gain("geosd", HARD_HALF) > gain("geosd", EASY_HALF)],
    ),
    "kl-loses-most-where-hard": claim(
        "FwdKL and RevKL lose most on the harder half of the benchmarks",
        place="Appendix, Per-benchmark OOD generalization; Table ood_per_bench",
        quote="FwdKL and RevKL degrade most sharply on the AIME splits",
        published="hard minus easy half, FwdKL 0.0 / 0.0 / 0.0, RevKL -1.0 / 0.0 / 0.0",
        holds=[gain(kl, HARD_HALF) < gain(kl, EASY_HALF) for kl in ("fwdkl", "revkl")],
    ),
}

"""Names, order, colours and markers of the methods, the same in every table and every figure.

The marker tells the kind of method. Methods of one marker, those of `EMPHASIZED`, and all that are
lines without markers in one panel differ in lightness by 12 of 100 and in colour by a CIE distance
of 15 under each of the three colour blindnesses: so eyes and grey print tell them apart.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from matplotlib.colors import to_rgb


@dataclass(frozen=True)
class Method:
    """Name in the paper, colour, marker (one per kind) and heading of a method in tables."""

    label: str
    colour: str
    marker: str
    kind: str


REFERENCE, DIVERGENCE, FILTERING = "Reference baselines", "Divergence controls", "Filtering"
GEOSD, ABLATION, OTHER = "GeoSD", "Ablations", "Other variants"

METHODS = {
    "pi_0": Method("π₀", "#000000", "P", REFERENCE),
    "sft": Method("SFT", "#E0B040", "s", REFERENCE),
    "grpo": Method("GRPO", "#0B5A28", "s", REFERENCE),
    "fwdkl": Method("FwdKL", "#2A1A78", "o", DIVERGENCE),
    "revkl": Method("RevKL", "#46A6DB", "o", DIVERGENCE),
    "jsd": Method("JSD", "#4C5616", "o", DIVERGENCE),
    "skewkl": Method("SkewKL", "#EDABC8", "o", DIVERGENCE),
    "tropd": Method("TrOPD", "#1F7F72", "^", FILTERING),
    "tip": Method("TIP", "#6E1848", "^", FILTERING),
    "geosd": Method("GeoSD", "#D35400", "D", GEOSD),
    "geosd_jsd": Method("GeoSD, Hellinger → JSD", "#6F6F6F", "v", ABLATION),
    "geosd_no_prox": Method("GeoSD, λ = 0", "#A6A6A6", "<", ABLATION),
    "geosd_adamw": Method("GeoSD, AdamW", "#4A4A4A", ">", ABLATION),
    "geosd_plain": Method("GeoSD, plain step", "#BBBBBB", "p", ABLATION),
    "opsd": Method("OPSD, published", "#0072B2", "h", OTHER),
}
"""In the paper's order (Table main_id_ood), then ablations; the last two are not in the paper."""
EMPHASIZED = ("pi_0", "grpo", "fwdkl", "revkl", "geosd")
"""Methods that keep their colour where more than these would be too many: the base model, and of
each idea that the paper's text compares the plain one."""
BACKGROUND = "#A0A0A0"
"""The grey of methods that are drawn without a colour of their own."""
DIVERGENCES = {name: each.label for name, each in METHODS.items() if each.kind == DIVERGENCE}
DIVERGENCES["hellinger"] = "Hellinger (GeoSD)"
"""The one name of each divergence in all figures; Hellinger's says whose it is."""
DASHED = (4, 1.5)
"""Lengths of strokes and gaps, in line widths."""


def method(variant: str) -> Method:
    """The name, colour and marker of a variant; one that is not in the paper is drawn grey."""
    return METHODS.get(variant, Method(variant, "#777777", "X", OTHER))


def ordered(variants: Iterable[str]) -> list[str]:
    """Sort the names of methods into the paper's order; others follow in the order given."""
    names = list(dict.fromkeys(variants))
    known = [name for name in METHODS if name in names]
    return known + [name for name in names if name not in METHODS]


def text_colour(colour: str) -> tuple[float, float, float]:
    """A darker shade of a method's colour, as light ones do not carry small letters."""
    red, green, blue = to_rgb(colour)
    return (0.62 * red, 0.62 * green, 0.62 * blue)

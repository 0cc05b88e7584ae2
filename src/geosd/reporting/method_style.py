"""Names, order, colours and markers of the methods, the same in every table and every figure.

Colours are after Tol's "muted" scheme and Okabe-Ito's vermilion. The marker tells the kind of
method; methods of one marker, and those of `EMPHASIZED`, differ in lightness: so they differ under
the common colour blindnesses, and in grey print.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from matplotlib.colors import to_rgb


@dataclass(frozen=True)
class Method:
    """Name in the paper, colour, marker (one per kind) and heading of a method in tables."""

    label: str
    colour: str
    marker: str
    kind: str

    @property
    def drawn(self) -> str:
        """Its name in a figure: mathematics is set as such there."""
        return MATHEMATICS.get(self.label, self.label)


REFERENCE, DIVERGENCE, FILTERING = "Reference baselines", "Divergence controls", "Filtering"
GEOSD, ABLATION, OTHER = "GeoSD", "Ablations", "Other variants"

METHODS = {
    "pi_0": Method("π₀", "#000000", "P", REFERENCE),
    "sft": Method("SFT", "#E0B040", "s", REFERENCE),
    "grpo": Method("GRPO", "#0B6B2E", "s", REFERENCE),
    "fwdkl": Method("FwdKL", "#332288", "o", DIVERGENCE),
    "revkl": Method("RevKL", "#56B4E9", "o", DIVERGENCE),
    "jsd": Method("JSD", "#8B8B24", "o", DIVERGENCE),
    "skewkl": Method("SkewKL", "#94368A", "o", DIVERGENCE),
    "tropd": Method("TrOPD", "#44AA99", "^", FILTERING),
    "tip": Method("TIP", "#882255", "^", FILTERING),
    "geosd": Method("GeoSD", "#D55E00", "D", GEOSD),
    "geosd_jsd": Method("GeoSD, Hellinger → JSD", "#6F6F6F", "v", ABLATION),
    "geosd_no_prox": Method("GeoSD, λ = 0", "#9A9A9A", "<", ABLATION),
    "geosd_adamw": Method("GeoSD, AdamW", "#4A4A4A", ">", ABLATION),
    "geosd_plain": Method("GeoSD, plain step", "#BBBBBB", "p", ABLATION),
    "opsd": Method("OPSD, published", "#0072B2", "h", OTHER),
}
"""In the paper's order (Table main_id_ood), then ablations; the last two are not in the paper."""
MATHEMATICS = {"π₀": r"$\pi_0$", "GeoSD, λ = 0": r"GeoSD, $\lambda=0$"}
"""How a name with mathematics in it is set in a figure."""
EMPHASIZED = ("pi_0", "grpo", "fwdkl", "revkl", "geosd")
"""Methods that keep their colour where more than these would be too many: the base model, and of
each idea that the paper's text compares the plain one."""
BACKGROUND = "#B5B5B5"
"""The grey of methods that are drawn without a colour of their own."""
DIVERGENCES = {name: each.label for name, each in METHODS.items() if each.kind == DIVERGENCE}
DIVERGENCES["hellinger"] = "Hellinger (GeoSD)"
"""The one name of each divergence in all figures; Hellinger's says whose it is."""
SOLID = ""
DASHED = (4, 1.5)
"""Dashes in seaborn's form: lengths of strokes and gaps, in line widths."""


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


def hue_by_method(variants: Iterable[str]) -> dict[str, Any]:
    """Seaborn's keywords that draw a column `variant` in the colours of the methods (`hue`)."""
    names = ordered(variants)
    palette = {name: method(name).colour for name in names}
    return {"hue": "variant", "hue_order": names, "palette": palette}


def style_by_method(variants: Iterable[str], dashed: Sequence[str] | None = None) -> dict[str, Any]:
    """Seaborn's keywords for a column `variant` in colours and markers; None: without lines."""
    names = ordered(variants)
    keywords = hue_by_method(names) | {
        "style": "variant",
        "style_order": names,
        "markers": {name: method(name).marker for name in names},
    }
    if dashed is not None:
        keywords["dashes"] = {name: DASHED if name in dashed else SOLID for name in names}
    return keywords

"""Names, order, colours and markers of the methods, the same in every table and every figure.

The marker tells the kind of method. Methods of one marker, those of `EMPHASIZED`, and all that are
lines without markers in one panel differ in lightness by 12 of 100 and in colour by a CIE distance
of 15 under each of the three colour blindnesses: so eyes and grey print tell them apart.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from matplotlib.colors import to_rgb


@dataclass(frozen=True)
class MethodStyle:
    """Name in the paper, colour, marker (one per kind) and heading of a method in tables."""

    label: str
    colour: str
    marker: str
    kind: str


REFERENCE, DIVERGENCE, FILTERING = "Reference baselines", "Divergence controls", "Filtering"
GEOSD, ABLATION, OTHER = "GeoSD", "Ablations", "Other variants"

METHODS = {
    "pi_0": MethodStyle("π₀", "#000000", "P", REFERENCE),
    "sft": MethodStyle("SFT", "#E0B040", "s", REFERENCE),
    "grpo": MethodStyle("GRPO", "#0B5A28", "s", REFERENCE),
    "fwdkl": MethodStyle("FwdKL", "#2A1A78", "o", DIVERGENCE),
    "revkl": MethodStyle("RevKL", "#46A6DB", "o", DIVERGENCE),
    "jsd": MethodStyle("JSD", "#4C5616", "o", DIVERGENCE),
    "skewkl": MethodStyle("SkewKL", "#EDABC8", "o", DIVERGENCE),
    "tropd": MethodStyle("TrOPD", "#1F7F72", "^", FILTERING),
    "tip": MethodStyle("TIP", "#6E1848", "^", FILTERING),
    "geosd": MethodStyle("GeoSD", "#D35400", "D", GEOSD),
    "geosd_jsd": MethodStyle("GeoSD, Hellinger → JSD", "#6F6F6F", "v", ABLATION),
    "geosd_no_prox": MethodStyle("GeoSD, λ = 0", "#A6A6A6", "<", ABLATION),
    "geosd_adamw": MethodStyle("GeoSD, AdamW", "#4A4A4A", ">", ABLATION),
    "geosd_plain": MethodStyle("GeoSD, plain step", "#BBBBBB", "p", ABLATION),
    "opsd": MethodStyle("OPSD, published", "#0072B2", "h", OTHER),
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


def method_style(variant: str) -> MethodStyle:
    """The name, colour and marker of a variant; one that is not in the paper is drawn grey."""
    return METHODS.get(variant, MethodStyle(variant, "#777777", "X", OTHER))


def ordered_methods(variants: Iterable[str]) -> list[str]:
    """Sort the names of methods into the paper's order; others follow in the order given."""
    names = list(dict.fromkeys(variants))
    known = [name for name in METHODS if name in names]
    return known + [name for name in names if name not in METHODS]


def method_text_colour(colour: str) -> tuple[float, float, float]:
    """A darker shade of a method's colour, as light ones do not carry small letters."""
    red, green, blue = to_rgb(colour)
    return (0.62 * red, 0.62 * green, 0.62 * blue)


DASHED_METHODS = ("pi_0", "geosd_no_prox")
"""The base model is a reference and no method, and that ablation is drawn with GeoSD alone."""


MARKER = {"markersize": 3.4, "markeredgewidth": 0.3, "markeredgecolor": "white"}


def coloured_methods(variants: Sequence[str]) -> list[str]:
    """The methods of a figure that have a colour and an interval: five or fewer."""
    few = len(variants) <= len(EMPHASIZED)
    return [name for name in variants if few or name in EMPHASIZED]


def method_style_line(variant: str) -> dict[str, Any]:
    """Keywords of `Axes.plot` for a method's line in its colour."""
    look, dashes = method_style(variant), (0, DASHED) if variant in DASHED_METHODS else "-"
    return {"color": look.colour, "marker": look.marker, "lw": 1.3, "ls": dashes, **MARKER}


def method_labels_with_rates(rates: Mapping[str, float]) -> dict[str, str]:
    """The label of each variant: its name and its learning rate, as `GeoSD at 1e-5`."""
    return {
        name: f"{method_style(name).label} at {method_style_rate(rate)}"
        for name, rate in rates.items()
    }


def method_style_rate(rate: float) -> str:
    """A learning rate in few letters, for labels of tables and figures.

    Example:
        >>> method_style_rate(3e-7), method_style_rate(2.5e-6)
        ('3e-7', '2.5e-6')
    """
    power = math.floor(math.log10(rate) + 1e-9)
    return f"{round(rate / 10**power, 3):g}e{power}"


def method_styles_by_kind(variants: Iterable[str]) -> dict[str, list[str]]:
    """Kind -> its methods; ablations stand with the method.

    Example:
        >>> method_styles_by_kind(["geosd_plain", "geosd", "tip"])
        {'Filtering': ['tip'], 'GeoSD': ['geosd', 'geosd_plain']}
    """
    rows: dict[str, list[str]] = {}
    for name in ordered_methods(variants):
        kind = method_style(name).kind
        rows.setdefault(GEOSD if kind == ABLATION else kind, []).append(name)
    return rows

"""How methods are named, ordered and drawn: the same in every table and every figure.

Colours are fixed per method, so a figure of three methods and one of nine agree. They are Tol's
"muted" scheme and Okabe-Ito's vermilion, which keep apart under the common colour blindnesses; the
marker tells the kind of method as well, so no reading rests on colour alone.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import matplotlib
from matplotlib.figure import Figure

from geosd.files import atomic_write

COLUMN_IN = 3.35
PAGE_IN = 6.9
"""Widths of one column and of the page, in inches."""


@dataclass(frozen=True)
class Method:
    """How a variant appears.

    Attributes:
        label: Its name in the paper.
        colour: Hex colour.
        marker: Matplotlib marker; one per kind of method.
        kind: Heading of its block in the paper's tables.
    """

    label: str
    colour: str
    marker: str
    kind: str


REFERENCE, DIVERGENCE, FILTERING = "Reference baselines", "Divergence controls", "Filtering"
OURS, ABLATION, OTHER = "GeoSD", "Ablations", "Other variants"

METHODS = {
    "pi_0": Method("π₀", "#000000", "P", REFERENCE),
    "sft": Method("SFT", "#DDAA33", "s", REFERENCE),
    "grpo": Method("GRPO", "#117733", "s", REFERENCE),
    "fwdkl": Method("FwdKL", "#332288", "o", DIVERGENCE),
    "revkl": Method("RevKL", "#56B4E9", "o", DIVERGENCE),
    "jsd": Method("JSD", "#999933", "o", DIVERGENCE),
    "skewkl": Method("SkewKL", "#AA4499", "o", DIVERGENCE),
    "tropd": Method("TrOPD", "#44AA99", "^", FILTERING),
    "tip": Method("TIP", "#882255", "^", FILTERING),
    "geosd": Method("GeoSD", "#D55E00", "D", OURS),
    "geosd_jsd": Method("GeoSD, Hellinger → JSD", "#6F6F6F", "v", ABLATION),
    "geosd_no_prox": Method("GeoSD, λ = 0", "#9A9A9A", "<", ABLATION),
    "geosd_adamw": Method("GeoSD, AdamW", "#4A4A4A", ">", ABLATION),
    "geosd_plain": Method("GeoSD, plain step", "#BBBBBB", "p", ABLATION),
}
"""In the paper's order (Table main_id_ood), then the ablations, the last of which is ours."""


def method(variant: str) -> Method:
    """How a variant appears; one that is not in the paper keeps its name and is drawn grey."""
    return METHODS.get(variant, Method(variant, "#777777", "X", OTHER))


def ordered(variants: Iterable[str]) -> list[str]:
    """Variants in the paper's order; others follow in the order given."""
    names = list(dict.fromkeys(variants))
    known = [name for name in METHODS if name in names]
    return known + [name for name in names if name not in METHODS]


def save(figure: Figure, folder: Path | str, name: str) -> list[Path]:
    """Write a figure as PDF, SVG and PNG; the same figure gives the same bytes.

    Args:
        figure: What to write.
        folder: Where to.
        name: File name without ending.

    Returns:
        The three paths.
    """
    # Dates and random ids are what else would differ between two drawings of one figure.
    undated = {
        "pdf": {"CreationDate": None, "ModDate": None},
        "svg": {"Date": None},
        "png": {"Software": None},
    }
    paths = []
    with matplotlib.rc_context({"svg.hashsalt": "geosd"}):
        for ending, metadata in undated.items():
            path = Path(folder) / f"{name}.{ending}"
            with atomic_write(path) as temporary:
                figure.savefig(temporary, format=ending, metadata=metadata)
            paths.append(path)
    return paths

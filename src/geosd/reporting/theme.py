"""The look of every figure: one theme of seaborn, one family of letters, sizes for print.

Letters and mathematics are both of DejaVu Sans, which comes with matplotlib: it is the same on
every machine, and has every sign that the figures need. Colours and markers of the methods are
those of `geosd.reporting.method_style`.
"""

from __future__ import annotations

from typing import Any

import matplotlib
import seaborn as sns

FONT = "DejaVu Sans"
"""The one family, of text and of mathematics. Roots are powers: `\\sqrt` is drawn from another."""
SMALLEST_PT = 6.0
"""No letter of a figure is smaller, but for indices in a formula."""

THEME: dict[str, Any] = {
    **sns.axes_style("ticks"),
    **sns.plotting_context("paper"),
    "font.family": FONT,
    "mathtext.fontset": "dejavusans",
    "font.size": 7.5,
    "axes.titlesize": 8,
    "axes.labelsize": 7.5,
    "xtick.labelsize": 7,
    "ytick.labelsize": 7,
    "legend.fontsize": 7,
    "legend.title_fontsize": 7,
    "legend.frameon": False,
    "axes.linewidth": 0.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "xtick.minor.width": 0.4,
    "ytick.minor.width": 0.4,
    "xtick.major.size": 2.5,
    "ytick.major.size": 2.5,
    "xtick.minor.size": 1.5,
    "ytick.minor.size": 1.5,
    "lines.linewidth": 1.2,
    "figure.dpi": 150,
    "savefig.dpi": 300,
    "savefig.bbox": "standard",  # sizes stay what the figure asked for
    "pdf.fonttype": 42,  # text stays text for editors and reviewers
    "svg.fonttype": "path",
    "svg.hashsalt": "geosd",  # ids that are random otherwise
}
"""Settings of matplotlib in which figures are drawn and saved, whatever is set elsewhere."""

themed = matplotlib.rc_context(THEME)
"""Decorator of a function that draws or saves a figure: it runs in `THEME`."""

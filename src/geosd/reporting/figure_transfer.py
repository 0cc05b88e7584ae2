"""Gains over the dial from transfer to conflict, at one learning rate for all methods."""

from matplotlib.figure import Figure

from geosd.reporting import transfer
from geosd.reporting.dial_gains import ByStudy, dial_gains_at_common_rate


def plot(
    scores: ByStudy,
    rates_of_runs: ByStudy,
    conflict: ByStudy,
    purpose: ByStudy,
    common_rate: ByStudy,
) -> Figure:
    """Draw OOD gains left and ID gains right, a line a method."""
    words, runs = dial_gains_at_common_rate(scores, rates_of_runs, conflict, purpose, common_rate)
    return transfer.plot(words, runs)

"""Gains over the dial from transfer to conflict, at each method's best learning rate."""

from matplotlib.figure import Figure

from geosd.reporting import transfer
from geosd.reporting.dial_gains import ByStudy, dial_gains_at_best_rates


def plot(scores: ByStudy, rates_of_runs: ByStudy, conflict: ByStudy, purpose: ByStudy) -> Figure:
    """Draw OOD gains left and ID gains right, a line a method."""
    words, runs = dial_gains_at_best_rates(scores, rates_of_runs, conflict, purpose)
    return transfer.plot(words, runs)

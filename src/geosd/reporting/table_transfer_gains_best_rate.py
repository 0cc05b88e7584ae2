"""Gains over the dial from transfer to conflict, at each method's best learning rate."""

from geosd.reporting import transfer
from geosd.reporting.dial_gains import ByStudy, dial_gains_at_best_rates
from geosd.reporting.tables import Table


def build(scores: ByStudy, rates_of_runs: ByStudy, conflict: ByStudy, purpose: ByStudy) -> Table:
    """Tabulate each method's gain at each setting, and where its OOD gain crosses 0."""
    words, runs = dial_gains_at_best_rates(scores, rates_of_runs, conflict, purpose)
    return transfer.gains_table(words, runs)

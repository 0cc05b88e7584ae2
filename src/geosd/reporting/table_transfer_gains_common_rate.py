"""Gains over the dial from transfer to conflict, at one learning rate for all methods."""

from geosd.reporting import transfer
from geosd.reporting.dial_gains import ByStudy, dial_gains_at_common_rate
from geosd.reporting.tables import Table


def build(
    scores: ByStudy,
    rates_of_runs: ByStudy,
    conflict: ByStudy,
    purpose: ByStudy,
    common_rate: ByStudy,
) -> Table:
    """Tabulate each method's gain at each setting, and where its OOD gain crosses 0."""
    words, runs = dial_gains_at_common_rate(scores, rates_of_runs, conflict, purpose, common_rate)
    return transfer.gains_table(words, runs)

"""Cells of a table by the label of their row and the key of their column."""

from __future__ import annotations

from geosd.reporting.tables import Table, TableCell


def cell(table: Table, label: str, key: str) -> TableCell:
    """The cell of the one row with a label."""
    (row,) = [row for row in table.rows if row.label == label]
    return row.cells[[column.key for column in table.columns].index(key)]

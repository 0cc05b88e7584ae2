"""A recomputed number beside the paper's, and which printed digits differ."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from geosd.reporting.tables import MISSING, Cell, Column


@dataclass(frozen=True)
class Quantity:
    """A quantity that the paper prints.

    Attributes:
        key: Its name in the CSV; the paper's column is `<key>.paper`.
        label: Its heading.
        printed: Format in which the paper prints it, e.g. ".1f".
        shown: Format in which ours is shown, where it is another one.
        group: Heading over it.
    """

    key: str
    label: str
    printed: str
    shown: str = ""
    group: str = ""

    @property
    def columns(self) -> tuple[Column, Column]:
        """Ours, and the paper's."""
        ours = Column(self.key, self.label, self.group)
        return ours, Column(f"{self.key}.paper", "paper", self.group)

    def cells(self, ours: float | None, paper: float | None) -> tuple[Cell, Cell]:
        """Ours, and the paper's as printed."""
        mine = Cell(ours, form=self.shown or self.printed)
        return mine, Cell(paper, form=self._form(paper))

    def agrees(self, ours: float | None, paper: float | None) -> bool:
        """Whether ours has the digits that the paper prints; true where one of them is missing."""
        form = self._form(paper)
        return None in (ours, paper) or format(ours, form) == format(paper, form)

    def _form(self, paper: float | None) -> str:
        """The paper's format of one number: a whole number was printed without decimals."""
        return re.sub(r"\.\d", ".0", self.printed) if isinstance(paper, int) else self.printed


Pair = tuple[float | None, float | None]


def columns(quantities: Sequence[Quantity]) -> tuple[Column, ...]:
    """Two columns for each quantity."""
    return tuple(column for quantity in quantities for column in quantity.columns)


def cells(quantities: Sequence[Quantity], pairs: Sequence[Pair]) -> tuple[Cell, ...]:
    """Two cells for each quantity, from (ours, paper)."""
    both = zip(quantities, pairs, strict=True)
    return tuple(cell for quantity, pair in both for cell in quantity.cells(*pair))


def differing(quantities: Sequence[Quantity], pairs: Sequence[Pair]) -> str:
    """Labels of quantities whose printed digits differ, or "none"; a dash if none is printed."""
    both = list(zip(quantities, pairs, strict=True))
    found = [quantity.label for quantity, pair in both if not quantity.agrees(*pair)]
    if all(paper is None for _, paper in pairs):
        return MISSING
    return ", ".join(found) or "none"

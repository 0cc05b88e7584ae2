"""Numbers computed here beside the paper's, and which printed digits differ."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from geosd.reporting.tables import MISSING, Cell, Column

Numbers = Mapping[str, float | None]
"""Values by key of a `Quantity`; None, or no entry, where there is none."""
DIFFERS = Column("differs", "differs from the paper")


@dataclass(frozen=True)
class Quantity:
    """A quantity that the paper prints and that is computed here.

    Attributes:
        key: Its name in the CSV; the paper's column is `<key>.paper`.
        label: Its heading.
        published_form: Format in which the paper prints it, e.g. ".1f".
        computed_form: Format of the number computed here, where it is another one.
        group: Heading over it.
    """

    key: str
    label: str
    published_form: str
    computed_form: str = ""
    group: str = ""

    def agrees(self, computed: float | None, published: float | None) -> bool:
        """Whether both have the digits that the paper prints; true where one is missing."""
        form = self.form_of(published)
        return None in (computed, published) or format(computed, form) == format(published, form)

    def form_of(self, published: float | None) -> str:
        """The paper's format of one number: a whole number was printed without decimals."""
        form = self.published_form
        return re.sub(r"\.\d", ".0", form) if isinstance(published, int) else form


def columns(quantities: Sequence[Quantity]) -> tuple[Column, ...]:
    """Two columns for each quantity: computed, and the paper's."""
    return tuple(
        column
        for q in quantities
        for column in (Column(q.key, q.label, q.group), Column(f"{q.key}.paper", "paper", q.group))
    )


def cells(
    quantities: Sequence[Quantity], computed: Numbers, published: Numbers
) -> tuple[Cell, ...]:
    """Two cells for each quantity: computed, and as the paper prints it."""
    return tuple(
        cell
        for q in quantities
        for cell in (
            Cell(computed.get(q.key), form=q.computed_form or q.published_form),
            Cell(published.get(q.key), form=q.form_of(published.get(q.key))),
        )
    )


def differing(quantities: Sequence[Quantity], computed: Numbers, published: Numbers) -> Cell:
    """Labels of quantities whose printed digits differ, or "none"; a dash if none is printed."""
    if all(published.get(q.key) is None for q in quantities):
        return Cell(MISSING)
    labels = [
        q.label for q in quantities if not q.agrees(computed.get(q.key), published.get(q.key))
    ]
    return Cell(", ".join(labels) or "none")

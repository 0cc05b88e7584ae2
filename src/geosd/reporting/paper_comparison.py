"""Numbers computed here and the paper's, and which printed digits differ."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from geosd.reporting.method_tables import MethodColumn
from geosd.reporting.tables import MISSING, TableCell, TableColumn

NOT_THE_SAME_MODEL = (
    " A model of this study is compared with the paper's model of the same architecture; they are"
    " not the same model, and only the pattern can be compared."
)

Numbers = Mapping[str, float | None]
"""Values by key of a `Quantity`; None, or no entry, where there is none."""


@dataclass(frozen=True)
class ComparedQuantity:
    """A number that is computed here and compared with the one that the paper prints.

    Its columns are `<key>` and `<key>.paper`; `published_form` is the paper's format.
    """

    key: str
    label: str
    published_form: str
    computed_form: str = ""
    group: str = ""

    def agrees(self, computed: float | None, published: float | None) -> bool:
        """Whether computed and published number have the same printed digits, or one is missing."""
        form = self.form_of(published)
        return None in (computed, published) or format(computed, form) == format(published, form)

    def form_of(self, published: float | None) -> str:
        """The format of a published number: a whole number was printed without decimals."""
        form = self.published_form
        return re.sub(r"\.\d", ".0", form) if isinstance(published, int) else form


def comparison_columns(quantities: Sequence[ComparedQuantity]) -> tuple[TableColumn, ...]:
    """Two columns a compared quantity, computed here and the paper's; last, what differs."""
    columns = [
        column
        for q in quantities
        for column in (
            TableColumn(q.key, q.label, q.group),
            TableColumn(f"{q.key}.paper", "paper", q.group),
        )
    ]
    return (*columns, TableColumn("differs", "differs from the paper", quantities[-1].group))


def comparison_cells(
    quantities: Sequence[ComparedQuantity], computed: Numbers, published: Numbers
) -> tuple[TableCell, ...]:
    """Two cells a compared quantity, and one that names those whose printed digits differ."""
    cells, labels = [], []
    for q in quantities:
        here, there = computed.get(q.key), published.get(q.key)
        cells.append(TableCell(here, form=q.computed_form or q.published_form))
        cells.append(TableCell(there, form=q.form_of(there)))
        labels += [] if q.agrees(here, there) else [q.label]
    unknown = all(published.get(q.key) is None for q in quantities)
    return (*cells, TableCell(MISSING if unknown else ", ".join(labels) or "none"))


def beside_paper(columns: Sequence[MethodColumn], words: str = NOT_THE_SAME_MODEL) -> str:
    """Words of a note that hold where a column has the paper's numbers; empty where none has."""
    return words if any(column.key.endswith(".paper") for column, _ in columns) else ""

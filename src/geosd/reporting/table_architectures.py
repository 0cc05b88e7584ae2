"""Dimensions and parameter counts of the models (the paper's Table archs)."""

from collections.abc import Mapping, Sequence

from geosd.claims import published as paper
from geosd.models.architectures import (
    TINY_MODELS,
    Architecture,
    published_architectures,
    tiny_architecture,
)
from geosd.problems.search.corpora import VOCABULARY
from geosd.reporting.paper_comparison import ComparedQuantity, comparison_cells, comparison_columns
from geosd.reporting.tables import MISSING, Table, TableCell, TableColumn, TableRow

LABELS = {"layers": "L", "hidden": "d", "ffn": "d_ff", "heads": "heads", "kv_heads": "kv"}
LABELS |= {"head": "h", "vocabulary": "V"}
QUANTITIES = tuple(ComparedQuantity(key, label, "d") for key, label in LABELS.items())


def build(models: Sequence[str]) -> Table:
    """Build `table_architectures`; N counts every parameter, a tied head once."""
    published = paper.published()["archs"]["models"]
    rows = [
        _row(shape, published[name], "The paper's models")
        for name, shape in published_architectures().items()
    ]
    for name in models:
        if name in TINY_MODELS:
            shape = tiny_architecture(name, len(VOCABULARY))
            rows.append(_row(shape, {}, "This study's models", paper.published_family(name)))
    note = (
        "L: blocks; d: hidden size; d_ff: width of the feed-forward layers; heads and kv: query"
        " heads, key and value heads; h: dimensions of a head; V: vocabulary; N: all parameters,"
        " norms included, a tied output head counted with the embedding. Ours are the released"
        " configurations. A small model stands for the paper's model of the same architecture."
    )
    *compared, differs = comparison_columns(QUANTITIES)
    size = (TableColumn("parameters_millions", "N, millions"), TableColumn("tied", "tied"))
    head = (*compared, *size, differs, TableColumn("stands_for", "stands for"))
    return Table("table_architectures", "Model architectures", note, "Model", head, tuple(rows))


def _row(
    shape: Architecture, published: Mapping[str, int], kind: str, stands_for: str | None = None
) -> TableRow:
    computed = {q.key: getattr(shape, q.key) for q in QUANTITIES}
    *compared, differs = comparison_cells(QUANTITIES, computed, published)
    size = (TableCell(shape.parameters / 1e6, form=".3f"), TableCell("yes" if shape.tied else "no"))
    return TableRow(
        shape.label, kind, (*compared, *size, differs, TableCell(stands_for or MISSING))
    )

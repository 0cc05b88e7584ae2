"""Memory of K-FAC and of the anchor over the scale ladder (the paper's Table kfac_memory)."""

from typing import Any

from geosd.claims.published import published
from geosd.costs.memory_and_disk import (
    GB,
    TotalTrainingMemory,
    rounded_memory,
    total_training_memory,
)
from geosd.models.architectures import architecture
from geosd.reporting.paper_comparison import ComparedQuantity, comparison_cells, comparison_columns
from geosd.reporting.tables import Table, TableCell, TableColumn, TableRow

QUANTITIES = (
    ComparedQuantity("full", "Full EMA", ".1f", ".2f"),
    ComparedQuantity("kfac", "K-FAC total", ".1f", ".2f"),
    ComparedQuantity("snapshot", "+ bf16 ckpt", ".1f", ".2f"),
    ComparedQuantity("total", "Total", ".1f", ".2f"),
    ComparedQuantity("increase", "increase, %", "+.0f", "+.1f"),
)
GIVEN = (
    TableColumn("parameters_billions", "N, billions"),
    TableColumn("g", "g"),
    TableColumn("dtype", "dtype"),
)
MORE = (
    TableColumn("snapshot.rounded", "ckpt, N rounded"),
    TableColumn("total.rounded", "Total, terms rounded"),
    TableColumn("kfac.shared", "K-FAC as built here"),
)


def build() -> Table:
    """Build `table_kfac_memory`: GB by size, and sums of rounded terms, which are the paper's."""
    rows = [_row(name, row) for name, row in published()["kfac_memory"]["rows"].items()]
    note = (
        "GB of 10^9 bytes. Full EMA: dense fp32 covariances, which are never formed. K-FAC total:"
        " covariances in g blocks and their inverses, one for each input and output of the seven"
        " projections, L (7 d^2 + 2 d_q^2 + 2 d_kv^2 + 3 d_ff^2) / g entries each. bf16 ckpt: 2 N"
        " bytes. Increase: over 16 N bytes. Printed digits that differ are the paper's rounding: it"
        " takes N to 0.1 billion and adds printed terms, and with these two steps every digit is"
        " its own. As built here, q, k, v share one input covariance and so do gate and up."
    )
    head = (*GIVEN, *comparison_columns(QUANTITIES), *MORE)
    title = "Memory across the Qwen3 scale ladder"
    return Table("table_kfac_memory", title, note, "Model", head, tuple(rows))


def _row(name: str, published_row: dict[str, Any]) -> TableRow:
    model, setting = architecture(name), (published_row["blocks"], published_row["storage"])
    separate, shared = (
        total_training_memory(model, *setting, share_inputs=s) for s in (False, True)
    )
    compared = comparison_cells(QUANTITIES, _memory_in_gb(separate), published_row)
    given = (
        TableCell(model.parameters / 1e9, form=".3f"),
        TableCell(published_row["blocks"], form="d"),
        TableCell(published_row["storage"]),
    )
    rounded = [TableCell(round(gb, 10)) for gb in rounded_memory(separate)]
    shared_kfac = TableCell(shared.kfac / GB, form=".2f")
    return TableRow(model.label, "", (*given, *compared, *rounded, shared_kfac))


def _memory_in_gb(state: TotalTrainingMemory) -> dict[str, float]:
    """The terms of a training state as in Table kfac_memory, in GB; `increase` in percent."""
    in_gb = {name: size / GB for name, size in vars(state).items()}
    return in_gb | {"total": state.extra / GB, "increase": state.increase}

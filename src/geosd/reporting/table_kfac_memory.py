"""Memory of K-FAC and of the anchor over the scale ladder (the paper's Table kfac_memory)."""

from __future__ import annotations

from typing import Any

from geosd.claims.published import published
from geosd.costs.update_cost import GB, TrainingMemory, memory, rounded_terms
from geosd.models.published_architectures import architecture
from geosd.reporting.paper_comparison import DIFFERS, Quantity, cells, columns, differing
from geosd.reporting.specs import OutputSpec
from geosd.reporting.tables import Cell, Column, Row, Table

SPEC = OutputSpec(
    title="memory of K-FAC over the scale ladder",
    caption=(
        "Memory of K-FAC's factors over the paper's ladder of model sizes, beside what the paper "
        "prints."
    ),
)

QUANTITIES = (
    Quantity("full", "Full EMA", ".1f", ".2f"),
    Quantity("kfac", "K-FAC total", ".1f", ".2f"),
    Quantity("snapshot", "+ bf16 ckpt", ".1f", ".2f"),
    Quantity("total", "Total", ".1f", ".2f"),
    Quantity("increase", "increase, %", "+.0f", "+.1f"),
)
GIVEN = (Column("parameters_billions", "N, billions"), Column("g", "g"), Column("dtype", "dtype"))
MORE = (
    DIFFERS,
    Column("snapshot.rounded", "ckpt, N rounded"),
    Column("total.rounded", "Total, terms rounded"),
    Column("kfac.shared", "K-FAC as built here"),
)


def build() -> Table:
    """A row for each size, with g and type as the paper prints them.

    In GB; beside them the same sums from rounded terms, which are the paper's to the digit.
    """
    rows = [_row(name, row) for name, row in published()["kfac_memory"]["rows"].items()]
    note = (
        "GB of 10^9 bytes. Full EMA: dense fp32 covariances, which are never formed. K-FAC total:"
        " covariances in g blocks and their inverses, one for each input and output of the seven"
        " projections, L (7 d^2 + 2 d_q^2 + 2 d_kv^2 + 3 d_ff^2) / g entries each. bf16 ckpt: 2 N"
        " bytes. Increase: over 16 N bytes. Printed digits that differ are the paper's rounding: it"
        " takes N to 0.1 billion and adds printed terms, and with these two steps every digit is"
        " its own. As built here, q, k, v share one input covariance and so do gate and up."
    )
    head = (*GIVEN, *columns(QUANTITIES), *MORE)
    title = "Memory across the Qwen3 scale ladder"
    return Table("table_kfac_memory", title, note, "Model", head, tuple(rows))


def _row(name: str, published_row: dict[str, Any]) -> Row:
    model, setting = architecture(name), (published_row["blocks"], published_row["storage"])
    separate, shared = memory(model, *setting), memory(model, *setting, share_inputs=True)
    both = (QUANTITIES, memory_in_gb(separate), published_row)
    given = (
        Cell(model.parameters / 1e9, form=".3f"),
        Cell(published_row["blocks"], form="d"),
        Cell(published_row["storage"]),
    )
    rounded = [Cell(round(gb, 10)) for gb in rounded_terms(separate)]
    more = (differing(*both), *rounded, Cell(shared.kfac / GB, form=".2f"))
    return Row(model.label, "", (*given, *cells(*both), *more))


def memory_in_gb(memory: TrainingMemory) -> dict[str, float]:
    """The terms of a training state that the paper prints, in GB; `increase` in percent."""
    in_gb = {name: size / GB for name, size in vars(memory).items()}
    return in_gb | {"total": memory.extra / GB, "increase": memory.increase}

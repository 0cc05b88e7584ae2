"""Training memory at 8B (the paper's Table memory_methods)."""

from geosd.claims.published import published
from geosd.costs.memory_and_disk import (
    GB,
    STATE_BYTES,
    logits_in_memory,
    memory_of_logits,
    total_training_memory,
)
from geosd.costs.update_operations import UpdateOperationsSize
from geosd.models.architectures import architecture
from geosd.reporting.paper_comparison import (
    ComparedQuantity,
    Numbers,
    comparison_cells,
    comparison_columns,
)
from geosd.reporting.tables import Table, TableRow

MODEL = "qwen3-8b"
QUANTITIES = (
    ComparedQuantity("base", "Base train", ".0f", ".1f"),
    ComparedQuantity("kfac", "K-FAC", ".1f"),
    ComparedQuantity("snapshot", "Snapshot", ".1f"),
    ComparedQuantity("total", "Total", ".0f", ".1f"),
    ComparedQuantity("ratio", "x OPSD", ".2f"),
)


def build(problems: int, response_tokens: int, top_k: int | None) -> Table:
    """Build `table_memory`: OPSD, and GeoSD as in the paper, without the anchor, as built here."""
    update = UpdateOperationsSize(problems, response_tokens)
    ladder = published()["kfac_memory"]["rows"][MODEL]
    model = architecture(MODEL)
    setting = (ladder["blocks"], ladder["storage"])
    separate = total_training_memory(model, *setting, share_inputs=False)
    shared = total_training_memory(model, *setting, share_inputs=True)
    published_rows = published()["memory_methods"]["rows"]
    in_text = {entry["key"]: entry["value"] for entry in published()["text"]}
    workers = {"ratio": 1 + in_text["kfac_increase_percent"] / 100}
    whole = _gb(separate.base, separate.kfac, separate.snapshot)
    rows = (
        _row("OPSD (standard)", _gb(separate.base), published_rows["opsd"]),
        _row("GeoSD", whole, published_rows["geosd"]),
        _row("GeoSD, training workers", _gb(separate.base, separate.kfac), workers),
        _row("GeoSD, as built here", _gb(shared.base, shared.kfac, shared.snapshot), {}),
    )
    terms = ", ".join(f"{name} {size}" for name, size in STATE_BYTES.items())
    kept = memory_of_logits(update, logits_in_memory(model, top_k)) / GB
    union = memory_of_logits(update, logits_in_memory(model, top_k, models=3)) / GB
    note = (
        f"GB of 10^9 bytes. Base train is {sum(STATE_BYTES.values())} bytes for each of"
        f" {model.parameters / 1e9:.3f} billion parameters ({terms}), without activations. K-FAC"
        " holds covariances and their inverses; the snapshot is the anchor in bf16. With the anchor"
        " on the inference workers the training workers hold the third row. As built here, q, k, v"
        " share one input covariance and so do gate and up. The anchor's truncated logits take"
        f" {kept:.2f} GB an update, {union:.2f} GB on the union of three models; the paper says"
        f" less than {in_text['logits_gb']} GB."
    )
    title = f"Training memory of {model.label}"
    return Table("table_memory", title, note, "Method", comparison_columns(QUANTITIES), rows)


def _gb(base: int, kfac: int | None = None, snapshot: int | None = None) -> Numbers:
    """GB by quantity, of what a worker keeps in memory."""
    all_sizes = {"base": base, "kfac": kfac, "snapshot": snapshot}
    sizes = {key: size for key, size in all_sizes.items() if size is not None}
    total = sum(sizes.values())
    in_gb = {key: size / GB for key, size in sizes.items()}
    return in_gb | {"total": total / GB, "ratio": total / base}


def _row(label: str, computed: Numbers, published: Numbers) -> TableRow:
    return TableRow(label, "", comparison_cells(QUANTITIES, computed, published))

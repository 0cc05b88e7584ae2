"""Operations of an update (the paper's Table flops), and what its K-FAC entry can mean."""

from geosd.claims.published import published
from geosd.costs.update_operations import (
    FORWARD,
    UpdateOperationsSize,
    UpdateUnits,
    forward_units,
    kfac_units,
    tokens_for_update_operations,
    units_by_rule,
    units_counted,
)
from geosd.models.architectures import architecture
from geosd.reporting.paper_comparison import ComparedQuantity, comparison_cells, comparison_columns
from geosd.reporting.tables import Table, TableCell, TableColumn, TableRow

MODEL = "qwen3-8b"
UNITS, SUMMARY = "Units by component", "Sums"
QUANTITIES = (
    ComparedQuantity("student", "Student/RL", ".0f", ".2f", UNITS),
    ComparedQuantity("teacher", "Teacher", ".0f", ".2f", UNITS),
    ComparedQuantity("anchor", "Checkpoint", ".0f", ".2f", UNITS),
    ComparedQuantity("kfac", "K-FAC", ".1f", ".2f", UNITS),
    ComparedQuantity("total", "Total", ".1f", ".2f", SUMMARY),
    ComparedQuantity("ratio", "x OPSD", ".2f", "", SUMMARY),
)
WALL_CLOCK = TableColumn("wall_clock.paper", "Wall-clock, x OPSD, paper", SUMMARY)
RULE = "By the rule: a forward pass 2, a backward pass 4"
OPERATIONS = "Operation by operation, every response as long as the cap"


def build(problems: int, response_tokens: int, blocks: int, subsample: float) -> Table:
    """Build `table_flops`: by the paper's rule, and counted, for each reading of K-FAC."""
    model = architecture(MODEL)
    update = UpdateOperationsSize(problems, response_tokens)
    stated = kfac_units(model, update, blocks, subsample)
    every = kfac_units(model, update, blocks, 1.0)
    readings = {
        "K-FAC: covariances, in blocks": stated.covariance,
        "K-FAC: and inverses and products": stated.total,
        "K-FAC: covariances of every token": every.covariance,
        "K-FAC: every token, inverses and products": every.total,
        "K-FAC: covariances, dense": kfac_units(model, update, 1, subsample).covariance,
    }
    as_built = kfac_units(model, update, blocks, subsample, share_inputs=True).total
    opsd = units_by_rule(update)
    opsd_counted = units_counted(model, update)
    geosd_counted = units_counted(model, update, as_built)
    published_rows = published()["flops"]["rows"]
    teacher = published_rows["opsd"]["teacher"]
    kfac = published_rows["geosd"]["kfac"]
    readings = {"K-FAC: taken from the paper": kfac, **readings}
    rows = [_row("OPSD (standard)", RULE, opsd, opsd)]
    for label, units in readings.items():
        rows.append(_row(f"GeoSD, {label}", RULE, units_by_rule(update, units), opsd))
    rows += [
        _row("OPSD, operations counted", OPERATIONS, opsd_counted, opsd_counted),
        _row("GeoSD as built here, operations counted", OPERATIONS, geosd_counted, opsd_counted),
    ]
    shorter = tokens_for_update_operations(model, update, kfac, blocks, subsample)
    note = (
        f"At 8B, in units of N B_tok operations; generation is not counted. An update has"
        f" {update.sequences} responses of at most {update.tokens} tokens. The teacher's"
        f" {teacher} units mean a sequence"
        f" {teacher / FORWARD:g} times the student's, which is taken here; the"
        f" paper gives no lengths. Counted operation by operation a forward pass is"
        f" {forward_units(model, update.tokens):.2f} units at {update.tokens} tokens. The paper's"
        f" {kfac} for K-FAC does not follow from its g = {blocks} and s ="
        f" {subsample:g}: covariances are {stated.covariance:.2f}, with inverses and"
        f" preconditioning {stated.total:.2f}. It does follow if every token is counted and"
        f" inverses and products are too ({every.total:.2f}; the ratio is then"
        f" {units_by_rule(update, every.total).total / opsd.total:.2f}), or if responses have"
        f" {shorter:.0f} tokens on average, over which inverses and products weigh more."
        " Wall-clock is the paper's measurement; nothing here measures it."
    )
    head = (*comparison_columns(QUANTITIES), WALL_CLOCK)
    title = "Operations of an update, against standard OPSD"
    return Table("table_flops", title, note, "Method", head, tuple(rows))


def _row(label: str, kind: str, units: UpdateUnits, opsd: UpdateUnits) -> TableRow:
    published_row = published()["flops"]["rows"]["opsd" if units.anchor is None else "geosd"]
    computed = {**vars(units), "total": units.total, "ratio": units.total / opsd.total}
    wall_clock = TableCell(published_row["wall_clock"], form=".2f")
    compared = comparison_cells(QUANTITIES, computed, published_row)
    return TableRow(label, kind, (*compared, wall_clock))

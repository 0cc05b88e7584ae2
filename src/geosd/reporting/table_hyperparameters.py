"""Every setting of a study beside the paper's (Table hparams and the appendix around it)."""

from collections import defaultdict
from collections.abc import Mapping
from typing import Any, NamedTuple

from geosd.claims.published import published
from geosd.dotted_keys import dotted_items
from geosd.reporting.tables import MISSING, Cell, Column, Row, Table

KINDS = {
    "runs": "Runs",
    "data": "Problems",
    "pool": "Solution pool",
    "training": "Training",
    "objective": "Objectives",
    "evaluation": "Evaluation",
}
NOT_GIVEN = "not given"


class SettingOwner(NamedTuple):
    """Whom a hyperparameter is for; None where it is for all models, or for all variants."""

    model: str | None
    variant: str | None


def build(hyperparameters: Mapping[str, Any]) -> Table:
    """Build `table_hyperparameters`: each setting here, with whose it is, and in the paper."""
    rows = {kind: [] for kind in KINDS}
    for key, values in _by_key(hyperparameters).items():
        kind = key.split(".")[0]
        rows[kind].append(Row(key, KINDS[kind], _cells(key, values)))
    note = (
        "Keys are those of params.yaml with all overlays laid, objective.name.key those of the"
        " losses. Where models or variants differ, each value names its own. The paper gives no"
        f" value where it says {NOT_GIVEN}; params.yaml says beside each such value why it was"
        " chosen."
    )
    columns = (
        Column("value", "this study"),
        Column("value.paper", "paper"),
        Column("as_paper", "as in the paper"),
        Column("place", "place in the paper"),
    )
    all_rows = tuple(row for kind in rows.values() for row in kind)
    return Table("table_hyperparameters", "Hyperparameters", note, "Key", columns, all_rows)


def _by_key(settings: Mapping[str, Any]) -> dict[str, dict[SettingOwner, Any]]:
    """Each key's values by job, in the order of the settings."""
    by_key: dict[str, dict[SettingOwner, Any]] = defaultdict(dict)

    def add(section: str, values: Any, job: SettingOwner) -> None:
        for key, value in dotted_items({section: values}):
            if value is not None:
                by_key[key][job] = value

    for section in ("runs", "data"):
        add(section, settings[section], SettingOwner(None, None))
    for model, sections in settings["models"].items():
        for section in ("pool", "evaluation"):
            add(section, sections[section], SettingOwner(model, None))
        for variant, training in sections["training"].items():
            shared, objective = dict(training), dict(training["objective"])
            del shared["objective"]
            add("training", shared, SettingOwner(model, variant))
            add(f"objective.{objective.pop('name')}", objective, SettingOwner(model, variant))
    return by_key


def _cells(key: str, values: Mapping[SettingOwner, Any]) -> tuple[Cell, ...]:
    given = {job: entry for job in values if (entry := _entry(key, job)) is not None}
    if not given:
        return Cell(_by_owner(values)), Cell(NOT_GIVEN), Cell(MISSING), Cell(MISSING)
    same = [_agrees(values[job], entry) for job, entry in given.items()]
    verdict = "yes" if all(same) else "partly" if any(same) else "no"
    places = "; ".join(dict.fromkeys(entry["place"] for entry in given.values()))
    paper = _by_owner({job: entry["value"] for job, entry in given.items()})
    return Cell(_by_owner(values)), Cell(paper), Cell(verdict), Cell(places)


def _entry(key: str, job: SettingOwner) -> Mapping[str, Any] | None:
    """What the paper gives for a job; the first entry that is about it."""
    for entry in published()["hyperparameters"]["entries"]:
        about = job.model in entry.get("models", [job.model])
        if entry["key"] == key and about and job.variant in entry.get("variants", [job.variant]):
            return entry
    return None


def _agrees(value: Any, entry: Mapping[str, Any]) -> bool:
    if entry.get("among"):
        return set(entry["value"]) <= set(value)
    return value == entry["value"]


def _by_owner(values: Mapping[SettingOwner, Any]) -> str:
    """A value as text; if jobs differ, each value with whom it is for."""
    texts = {job: _text(value) for job, value in values.items()}
    if len(set(texts.values())) == 1:
        return next(iter(texts.values()))
    for owner_of in (lambda job: (job.variant,), lambda job: (job.model,), lambda job: job):
        owners: dict[str, dict[tuple, None]] = defaultdict(dict)  # keys: a set in order
        for job, text in texts.items():
            owners[text][owner_of(job)] = None
        if sum(map(len, owners.values())) == len({owner_of(job) for job in texts}):
            break
    # Names are those of params.yaml: labels of ablations hold commas.
    names = {text: [" ".join(filter(None, owner)) for owner in o] for text, o in owners.items()}
    return "; ".join(f"{text} ({', '.join(of_text)})" for text, of_text in names.items())


def _text(value: Any) -> str:
    if isinstance(value, (list, tuple)):
        return ", ".join(map(_text, value)) or "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:g}" if isinstance(value, float) else str(value)

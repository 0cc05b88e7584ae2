"""Every setting of a study and of the paper (Table hparams and the appendix around it)."""

from collections import defaultdict
from collections.abc import Mapping
from typing import Any, NamedTuple

from geosd.claims.published import published
from geosd.dotted_keys import dotted_items
from geosd.reporting.tables import MISSING, Table, TableCell, TableColumn, TableRow

KINDS = {
    "runs": "Runs",
    "data": "Problems",
    "pool": "Solution pool",
    "training": "Training",
    "objective": "Objectives",
    "evaluation": "Evaluation",
}
NOT_GIVEN = "not given"


class _SettingOwner(NamedTuple):
    """Whom a hyperparameter is for; None where it is for all models, or for all variants."""

    model: str | None
    variant: str | None


def build(hyperparameters: Mapping[str, Any]) -> Table:
    """Build `table_hyperparameters`: each setting here, with whose it is, and in the paper."""
    rows = {kind: [] for kind in KINDS}
    for key, values in _by_key(hyperparameters).items():
        kind = key.split(".")[0]
        rows[kind].append(TableRow(key, KINDS[kind], _cells(key, values)))
    note = (
        "Keys are those of params.yaml with all overlays laid, objective.name.key those of the"
        " losses. Where models or variants differ, each value names its own. The paper gives no"
        f" value where it says {NOT_GIVEN}; params.yaml says at each such value why it was"
        " chosen."
    )
    columns = (
        TableColumn("value", "this study"),
        TableColumn("value.paper", "paper"),
        TableColumn("as_paper", "as in the paper"),
        TableColumn("place", "place in the paper"),
    )
    all_rows = tuple(row for kind in rows.values() for row in kind)
    return Table("table_hyperparameters", "Hyperparameters", note, "Key", columns, all_rows)


def _by_key(settings: Mapping[str, Any]) -> dict[str, dict[_SettingOwner, Any]]:
    """Each key's values by job, in the order of the settings."""
    by_key: dict[str, dict[_SettingOwner, Any]] = defaultdict(dict)

    def add(section: str, values: Any, job: _SettingOwner) -> None:
        for key, value in dotted_items({section: values}):
            if value is not None:
                by_key[key][job] = value

    for section in ("runs", "data"):
        add(section, settings[section], _SettingOwner(None, None))
    for model, sections in settings["models"].items():
        for section in ("pool", "evaluation"):
            add(section, sections[section], _SettingOwner(model, None))
        for variant, training in sections["training"].items():
            owner = _SettingOwner(model, variant)
            shared = dict(training)
            objective = dict(shared.pop("objective"))
            name = objective.pop("name")
            add("training", shared, owner)
            add(f"objective.{name}", objective, owner)
    return by_key


def _cells(key: str, values: Mapping[_SettingOwner, Any]) -> tuple[TableCell, ...]:
    ours = TableCell(_by_owner(values))
    entries = {job: _entry(key, job) for job in values}
    given = {job: entry for job, entry in entries.items() if entry is not None}
    if not given:
        return ours, TableCell(NOT_GIVEN), TableCell(MISSING), TableCell(MISSING)
    paper = _by_owner({job: entry["value"] for job, entry in given.items()})
    same = [_agrees(values[job], entry) for job, entry in given.items()]
    verdict = "no"
    if all(same):
        verdict = "yes"
    elif any(same):
        verdict = "partly"
    places = "; ".join(dict.fromkeys(entry["place"] for entry in given.values()))
    return ours, TableCell(paper), TableCell(verdict), TableCell(places)


def _entry(key: str, job: _SettingOwner) -> Mapping[str, Any] | None:
    """The paper's entry for a job, the first that is about it."""
    for entry in published()["hyperparameters"]["entries"]:
        of_model = job.model in entry.get("models", [job.model])
        of_variant = job.variant in entry.get("variants", [job.variant])
        if entry["key"] == key and of_model and of_variant:
            return entry
    return None


def _agrees(value: Any, entry: Mapping[str, Any]) -> bool:
    if entry.get("among"):
        return set(entry["value"]) <= set(value)
    return value == entry["value"]


def _by_owner(values: Mapping[_SettingOwner, Any]) -> str:
    """A value as text; if jobs differ, each value with whom it is for."""
    texts = {job: _text(value) for job, value in values.items()}
    if len(set(texts.values())) == 1:
        return next(iter(texts.values()))
    by_text = _owners_by_text(texts)
    return "; ".join(f"{text} ({', '.join(owners)})" for text, owners in by_text.items())


def _owners_by_text(texts: Mapping[_SettingOwner, str]) -> dict[str, list[str]]:
    """Text -> whose it is: variants or models where these decide it alone, else both.

    Names are those of params.yaml: labels of ablations hold commas.
    """
    for keys in (["variant"], ["model"], ["model", "variant"]):
        owners: dict[str, list[str]] = {}
        for job, text in texts.items():
            names = [getattr(job, key) for key in keys]
            owner = " ".join(name for name in names if name is not None)
            of_text = owners.setdefault(text, [])
            if owner not in of_text:
                of_text.append(owner)
        named = [owner for of_text in owners.values() for owner in of_text]
        if len(named) == len(set(named)):  # nobody has two texts
            break
    return owners


def _text(value: Any) -> str:
    if isinstance(value, (list, tuple)):
        return ", ".join(map(_text, value)) or "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:g}" if isinstance(value, float) else str(value)

"""A family's outputs follow from what its studies ship, and git keeps what they were made of."""

from __future__ import annotations

import re
import shutil
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
import yaml
from shipped_studies import tidy_table

from geosd.cli import extras, figures, render_family, ship, ship_family
from geosd.cli.stale_family import say_stale_family
from geosd.config import load, resolve_family
from geosd.reporting.dial_gains import dial_gains_at_best_rates, dial_gains_at_common_rate
from geosd.reporting.shipping import read_shipped
from geosd.reporting.specs import output_kind

ROOT = Path(__file__).parents[2]
SHIPPED = ROOT / "figures"
SETTINGS = (0, 25, 50, 75, 100)
METHODS = {"sft": "SFT", "fwdkl": "FwdKL", "revkl": "RevKL", "tropd": "TrOPD", "geosd": "GeoSD"}
PARTS = (
    *("miniature_parts_0", "miniature_parts_100"),
    *("miniature_parts_0_selection", "miniature_parts_100_selection"),
)


@pytest.fixture(scope="module")
def params():
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(ROOT)
        return load("params.yaml")


@pytest.fixture(scope="module")
def values():
    """The values of params.yaml with few studies: each costs a tenth of a second."""
    text = (ROOT / "params.yaml").read_text(encoding="utf-8")
    values = yaml.load(text, Loader=yaml.CSafeLoader)
    entries, kept = values["studies"], {}
    for name in ("miniature_parts", *PARTS, "smollm2_methods"):
        while name:
            kept[name] = entries[name]
            name = entries[name].get("extends")
    return values | {"studies": kept}


@pytest.fixture
def clone(tmp_path, monkeypatch, values):
    """A folder with the configuration and what is shipped of the family miniature_parts."""
    for name in ("selected", "base_models", "analysis"):
        (tmp_path / name).symlink_to(ROOT / name)
    (tmp_path / "params.yaml").write_text(
        yaml.dump(values, Dumper=yaml.CSafeDumper, sort_keys=False)
    )
    for name in ("miniature_parts", *PARTS):
        shutil.copytree(SHIPPED / name, tmp_path / "figures" / name)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def accuracies(study: str) -> pd.DataFrame:
    """avg@k of each run of a shipped study, a column a benchmark, by run and seed."""
    scores = tidy_table(study, "scores")
    rows = scores[scores["metric"] == "avg@k"]
    return rows.pivot(index=["variant", "seed"], columns="benchmark", values="value")


@pytest.mark.parametrize("setting", SETTINGS)
def test_the_best_rate_is_that_of_the_best_validation_accuracy(setting):
    """Rates and gains of the shipped tables, reckoned from the shipped scores."""
    table = pd.read_csv(SHIPPED / "miniature_transfer/table_transfer_gains_best_rate.csv")
    table = table.set_index("method")
    validation = accuracies(f"miniature_transfer_{setting}_selection")["select_validation"]
    test = accuracies(f"miniature_transfer_{setting}")
    means = validation.groupby("variant").mean()
    ood = test[["ambiguous", "large", "mixed", "both"]].mean(axis="columns")
    for name, label in METHODS.items():
        best = means[means.index.str.startswith(f"{name}-learning_rate")].idxmax()
        for axis, of_runs in (("OOD", ood), ("ID", test["id"])):
            gain = (of_runs[best] - of_runs["pi_0"]).mean()
            assert table.loc[label, f"{axis} {setting / 100:g}"] == pytest.approx(gain, abs=1e-9)


@pytest.mark.parametrize(
    ("family", "method", "run", "settings"),
    [
        ("miniature_transfer", "FwdKL", "fwdkl", SETTINGS),
        ("miniature_transfer", "GeoSD", "geosd", SETTINGS),
        ("miniature_parts", "GeoSD, λ = 0", "geosd_no_prox", (0, 100)),
    ],
)
def test_collapses_are_counted_against_the_base_model_of_the_same_seed(
    family, method, run, settings
):
    """On the test problems in or out of distribution, on validation problems in distribution."""
    table = pd.read_csv(SHIPPED / family / "table_collapses.csv", index_col="method")
    for rate, of_run in (("1e-5", "1e-05"), ("3e-5", "3e-05"), ("1e-4", "0.0001")):
        name, fallen, seen = f"{run}-learning_rate_{of_run}", 0, 0
        for setting in settings:
            runs = accuracies(f"{family}_{setting}")
            runs = runs.assign(
                ood=runs[["ambiguous", "large", "mixed", "both"]].mean(axis="columns")
            )
            losses = runs.loc[name] - runs.loc["pi_0"]
            fallen += ((losses["id"] <= -10) | (losses["ood"] <= -10)).sum()
            validation = accuracies(f"{family}_{setting}_selection")["select_validation"]
            seen += (validation[name] - validation["pi_0"] <= -10).sum()
        assert table.loc[method, f"test {rate}"] == f"{fallen} of {6 * len(settings)}"
        assert table.loc[method, f"validation {rate}"] == f"{seen} of {6 * len(settings)}"


@pytest.mark.parametrize("name", ["miniature_transfer", "miniature_parts", "miniature_all"])
def test_every_output_is_shipped_with_its_files_caption_and_sources(params, name):
    folder, family = SHIPPED / name, resolve_family(params, name)
    shipped = read_shipped(folder)
    assert [*shipped.outputs] == [*family.outputs]
    assert (shipped.outputs, shipped.studies) == ship_family.ship_family_settings(family)
    for output in family.outputs:
        kept = {ending for ending in output_kind(output).extensions if ending not in ("pdf", "png")}
        assert {f"{output}.{ending}" for ending in kept} <= {*shipped.files}
        caption = (folder / f"{output}.caption.md").read_text(encoding="utf-8")
        links = re.findall(r"\]\(([^)]+)\)", caption)
        assert len(links) == len(family.studies)
        assert {*links} <= {*shipped.inputs} and all((folder / link).is_file() for link in links)


def test_a_clone_draws_a_family_of_what_its_studies_ship_to_the_same_bytes(clone, capsys):
    folder = clone / "figures/miniature_parts"
    kept = {path.name: path.read_bytes() for path in folder.glob("table_*")}
    for name in kept:
        (folder / name).unlink()
    figures.main("miniature_parts")
    printed = " ".join(capsys.readouterr().out.split())
    assert "drawn of its shipped studies, all as shipped" in printed
    assert {path.name: path.read_bytes() for path in folder.glob("table_*")} == kept
    (folder / "table_collapses.csv").write_text("method,1e-5\n")
    with pytest.raises(SystemExit):
        say_stale_family(resolve_family(load("params.yaml"), "miniature_parts"), Path("figures"))
    assert "output table_collapses.csv has changed" in capsys.readouterr().out


def test_a_study_that_is_shipped_anew_draws_its_family_only_by_make_ship(clone):
    (source,) = Path("figures", PARTS[0], "source").glob("scores.csv*")
    with source.open("ab") as file:
        file.write(b"\n")
    with pytest.raises(ValueError, match=r"(?s)/source/scores.csv.*is not the table .*make ship"):
        figures.redraw_figures("miniature_parts")
    with pytest.raises(ValueError, match=r"(?s)is a family.*Hint: `make figures STUDY=miniature_p"):
        ship.redraw_shipped("miniature_parts")


def test_only_a_family_of_shipped_studies_is_shipped(clone):
    results = clone / "results" / PARTS[0] / "analyse/scores.csv"
    results.parent.mkdir(parents=True)
    results.write_text("model\n")
    match = rf"(?s)another table than figures/{PARTS[0]}.*Hint: `make ship STUDY={PARTS[0]}`"
    with pytest.raises(ValueError, match=match):
        ship_family.main("miniature_parts")
    (clone / "figures" / PARTS[1] / "shipped.json").unlink()
    results.unlink()
    with pytest.raises(ValueError, match=rf"(?s)study {PARTS[1]} is not shipped.*Hint: `make ship"):
        ship_family.main("miniature_parts")
    shutil.rmtree("figures/miniature_parts")
    shutil.rmtree(Path("figures", PARTS[0]))
    with pytest.raises(SystemExit, match="(?s)Family miniature_parts is neither finished nor"):
        figures.main("miniature_parts")
    with pytest.raises(SystemExit, match=r"(?s)miniature_parts is not shipped.*Hint: `make ship"):
        say_stale_family(resolve_family(load("params.yaml"), "miniature_parts"), Path("figures"))


def test_settings_in_which_outputs_differ_are_kept_with_each(params, monkeypatch):
    """Two outputs may mean something else by one argument, such as `points` of other sweeps."""
    family = resolve_family(params, "miniature_parts")
    family = replace(family, outputs=("first", "second", "third"))
    of_each = {
        "first": {"points": {study: [1] for study in PARTS}},
        "second": {
            "points": {study: [1] for study in PARTS[1:]} | {PARTS[0]: [2]},
            "kind": dict.fromkeys(PARTS, "rates"),
        },
        "third": {"points": {study: [1] for study in PARTS}},
    }
    monkeypatch.setattr(type(family), "settings", lambda self, output: of_each[output])
    outputs, studies = ship_family.ship_family_settings(family)
    assert outputs == {"first": {}, "second": {"points": of_each["second"]["points"]}, "third": {}}
    assert studies == dict.fromkeys(PARTS, {"points": [1], "kind": "rates"})


def test_other_tidy_files_than_an_output_reads_are_named(clone):
    (file,) = Path("figures", PARTS[0], "source").glob("scores.csv*")
    with pytest.raises(ValueError, match=rf"(?s)scores of {PARTS[2]} is missing.*Hint: "):
        render_family.main("table_collapses", "miniature_parts", clone, (file,))
    assert not list(clone.glob("table_*"))


def test_what_the_studies_of_the_dial_lack_is_said():
    rates = {"a": {"geosd-1": {"variant": "geosd", "learning_rate": 1e-5}}}
    columns = ["model", "variant", "seed", "draw", "benchmark", "split", "metric", "k", "value"]
    rows = [("m", "pi_0", 40.0), ("m", "geosd-1", 41.0)]
    scores = pd.DataFrame(
        [
            (model, variant, 0, 0, name, split, "avg@k", 16, value)
            for model, variant, value in rows
            for name, split in (("id", "ID"), ("ood_avg", "OOD"))
        ],
        columns=columns,
    )
    given = ({"a": scores}, rates, {"a": 0.5}, {"a": "study"})
    words, gains = dial_gains_at_common_rate(*given, {"a": 1e-5})
    assert words == "learning rate 1e-5" and gains["id"].tolist() == [1.0]
    with pytest.raises(ValueError, match=r"(?s)do not choose best rates.*Hint: "):
        dial_gains_at_best_rates(*given)
    with pytest.raises(ValueError, match=r"(?s)no learning rate in common: a 1e-5, b 3e-5.*Hint: "):
        dial_gains_at_common_rate(*given, {"a": 1e-5, "b": 3e-5})


def test_a_family_needs_the_extras_of_its_studies(clone, values, capsys):
    extras.main("miniature_parts", ROOT / "envs")
    assert capsys.readouterr().out == ""
    both = {"about": "Two.", "kind": "family", "of": ["miniature", "smollm2_methods"]}
    entries = values["studies"] | {"both": both | {"outputs": ["claims_all"]}}
    text = yaml.dump(values | {"studies": entries}, Dumper=yaml.CSafeDumper, sort_keys=False)
    Path("params.yaml").write_text(text)
    extras.main("both", ROOT / "envs")
    assert capsys.readouterr().out == "smollm2\n"

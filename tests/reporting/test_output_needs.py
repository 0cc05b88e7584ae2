"""An output has something to show, or the configuration is refused before anything is trained."""

from __future__ import annotations

import re
from importlib import import_module

import pytest
import yaml
from made_up_tables import made_up_tables

from geosd.config import ConfigError, load, resolve_study, settings
from geosd.config.output_needs import NEEDS, output_needs_rows
from geosd.reporting.method_style import ABLATION, METHODS, OTHER
from geosd.reporting.saved_tables import save
from geosd.reporting.specs import output_spec_declarations, output_specs, render_output_spec
from geosd.reporting.tables import Table, TableCell, TableColumn, TableRow

MET = {"test", "benchmarks", "search"}
"""Needs that study quick meets: it has problems of the search world, in and out of distribution."""
UNMET = {"validation", "sizes", "grid", "grid_methods", "sweep", "factorial", "long", "live"}
UNMET |= {"paths", "stops", "dial", "verdicts"}
"""Needs that it does not: no selection, one model, no grid; the last three are of families."""


def quick_has(spec, methods) -> bool:
    """Whether an output has something to show of study quick, by its declaration alone."""
    methods = {*methods}
    return (
        {*spec.needs} <= MET
        and {*spec.compares} <= methods
        and all(not names or {*names} & methods for names in (spec.one_of, spec.trained))
        and not (spec.besides and methods <= {*spec.besides})
    )


@pytest.fixture
def loaded(root, tmp_path, monkeypatch):
    """Load params.yaml with some keys of a study changed."""
    (tmp_path / "base_models").symlink_to(root / "base_models")
    monkeypatch.chdir(tmp_path)
    text = (root / "params.yaml").read_text()

    def load_with(study="quick", **changes):
        values = yaml.load(text, Loader=yaml.CSafeLoader)
        values["studies"][study] |= changes
        kept = [study]  # and those that it extends: each takes milliseconds to check
        while parent := values["studies"][kept[-1]].get("extends"):
            kept.append(parent)
        values["studies"] = {name: values["studies"][name] for name in kept}
        values["study"] = study
        written = yaml.dump(values, Dumper=yaml.CSafeDumper, sort_keys=False)
        (tmp_path / "params.yaml").write_text(written)
        return resolve_study(load("params.yaml"), study)

    return load_with


@pytest.mark.slow
@pytest.mark.parametrize("name", output_specs())
def test_an_output_of_study_quick_is_rendered_or_refused(loaded, tmp_path, svg_alone, name):
    if not quick_has(output_specs()[name], loaded().overlay.methods):
        with pytest.raises(ConfigError, match=rf"(?s)studies.quick.outputs\[0\]: {name} .*Hint:"):
            loaded(outputs=[name])
        return
    study = loaded(outputs=[name])
    tables = made_up_tables(study)
    read = {tidy: tables[tidy] for tidy in output_specs()[name].reads}
    files = render_output_spec(name, read, settings(name, study), tmp_path)
    assert all(file.stat().st_size for file in files if file.suffix not in (".pdf", ".png"))


@pytest.mark.parametrize(
    ("study", "changes", "message"),
    [
        ("quick", {"methods": ["fwdkl", "geosd"]}, "figure_frontier compares with pi_0;"),
        ("quick", {"methods": ["pi_0"]}, "figure_training shows another method than pi_0;"),
        ("quick", {"methods": ["geosd", "geosd_jsd"]}, "table_significance shows another method"),
        ("quick", {"outputs": ["figure_mechanism"], "methods": ["pi_0", "grpo"]}, "trainings of"),
        ("miniature_ladder", {"methods": ["pi_0", "fwdkl"]}, "figure_scale compares with geosd;"),
        ("miniature_ablation", {"methods": ["geosd", "fwdkl"]}, "table_ablations shows geosd_jsd"),
        (
            "miniature_readings",
            {"methods": ["pi_0", "geosd"]},
            "table_readings compares with fwdkl",
        ),
        ("miniature_readings", {"grid": {}}, "table_readings shows the candidates of a grid"),
        ("quick_selection", {"outputs": ["table_main"]}, "data.purpose must be study"),
        ("quick", {"outputs": ["table_selection"]}, "table_selection shows scores on validation"),
        (
            "smollm2_methods",
            {"outputs": ["table_habits"]},
            "table_habits shows habits of the search",
        ),
        ("quick_selection", {"grid": {}}, "table_selection shows the candidates of a grid"),
        ("quick_selection", {"methods": ["geosd"]}, "table_selection compares with pi_0"),
        (
            "miniature_privilege",
            {"grid": {"geosd": {"privilege": [0.5]}}},
            "on mini-qwen3 no method has two values of privilege;",
        ),
        (
            "miniature_stepsize",
            {"grid": {"geosd": [{"steps": [50, 200]}, {"learning_rate": [1.0], "steps": [50]}]}},
            "no method has two values of learning_rate at the most steps;",
        ),
        (
            "miniature_teacher",
            {"grid": {"geosd": {"learning_rate": [1e-5], "teacher": ["fixed"]}}},
            "and there is none for geosd 1e-05 on mini-qwen3;",
        ),
        ("miniature_teacher", {"grid": {}}, "compares with a live teacher, and there is none;"),
        (
            "miniature_stepsize",
            {"grid": {"fwdkl": {"steps": [50, 200]}, "geosd": {"steps": [200]}}},
            "on mini-qwen3 GeoSD or any other method has fewer than two rates or steps;",
        ),
    ],
)
def test_what_a_study_lacks_is_named_with_its_line(loaded, study, changes, message):
    with pytest.raises(ConfigError) as refused:
        loaded(study, **changes)
    lines = [line for line in str(refused.value).splitlines() if f"studies.{study}.outputs" in line]
    (line,) = [line for line in lines if message in line]
    number = int(re.search(r"params.yaml:(\d+): ", line)[1])
    name = re.search(r"(?:table|figure)_\w+", line)[0]
    assert open("params.yaml").read().splitlines()[number - 1].strip() == f"- {name}"


def test_a_study_of_one_file_has_no_output_that_shows_benchmarks(loaded, tmp_path):
    data = {"source": "jsonl", "raw": "own.jsonl", "test_per_benchmark": None}
    assert loaded(outputs=["figure_frontier"], data=data)  # the job that reads files will say so
    (tmp_path / "own.jsonl").touch()
    with pytest.raises(
        ConfigError,
        match=r"figure_frontier .* there is no file but own.jsonl; data.*"
        r"outputs: \[table_main, figure_training\]",
    ):
        loaded(outputs=["figure_frontier"], data=data)
    assert loaded(outputs=["table_main", "figure_training"], data=data)
    (tmp_path / "own").mkdir()
    for name in ("train", "gsm8k"):
        (tmp_path / f"own/{name}.jsonl").touch()
    assert loaded(outputs=["figure_frontier"], data={**data, "raw": "own"})


@pytest.mark.parametrize(
    ("study", "name"),
    [
        ("quick", "table_main"),
        ("miniature_ablation", "table_ablations"),
        ("miniature_readings", "table_readings"),
        ("miniature_teacher", "table_teacher"),
    ],
)
def test_what_needs_test_problems_alone_is_made_without_benchmarks(loaded, tmp_path, study, name):
    assert {n for n, spec in output_specs().items() if "test" in spec.needs} >= {name}
    resolved = loaded(study, outputs=[name])
    tables = made_up_tables(resolved)
    tables["scores"] = tables["scores"].query("split == 'ID'")
    read = {tidy: tables[tidy] for tidy in output_specs()[name].reads}
    assert render_output_spec(name, read, settings(name, resolved), tmp_path)


def test_the_list_of_outputs_is_that_of_their_declarations(root):
    page = (root / "docs/configuration.md").read_text(encoding="utf-8")
    assert output_needs_rows() in page, "`make schema` writes the list anew"
    assert all(f"| `{name}` |" in page for name in output_spec_declarations())


def test_study_quick_meets_a_need_or_does_not():
    assert {*NEEDS} == MET | UNMET, "add the new need to MET or UNMET, as study quick has it"
    assert not MET & UNMET


@pytest.mark.slow
def test_study_quick_shows_most_outputs_and_is_refused_the_others(loaded):
    shown = {n for n, s in output_specs().items() if quick_has(s, loaded().overlay.methods)}
    assert shown >= {*loaded().outputs} - {"claims"}
    assert len(shown) > len(output_specs()) / 2
    refused = {"table_selection", "figure_scale", "figure_stepsize", "table_ablations"}
    assert not shown & refused


def test_every_word_of_a_declaration_means_something():
    for name, spec in output_spec_declarations().items():
        assert {*spec.needs} <= {*NEEDS}, name
        assert {*spec.compares, *spec.one_of, *spec.besides} <= {*METHODS}, name


def test_declarations_name_the_kinds_of_methods_that_their_modules_draw():
    ablations = {name for name, look in METHODS.items() if look.kind == ABLATION}
    specs = output_specs()
    assert {*specs["table_ablations"].one_of} == ablations
    assert {*specs["table_significance"].besides} == {"geosd", *ablations}
    drawn = {name for name, look in METHODS.items() if look.kind not in (ABLATION, OTHER)}
    assert {*specs["figure_consensus"].one_of} == drawn
    assert {*specs["figure_scale"].compares} == {
        *import_module("geosd.reporting.figure_scale").COMPARED
    }


@pytest.mark.parametrize(
    "rows", [(), (TableRow("a", "", (TableCell(None),)),)], ids=["no row", "no value"]
)
def test_an_empty_table_is_an_error(tmp_path, rows):
    table = Table("table_new", "", "", "", (TableColumn("a", "a"),), rows)
    with pytest.raises(ValueError, match="(?s)table_new is empty.*Hint:"):
        save(table, tmp_path)
    assert not list(tmp_path.iterdir())

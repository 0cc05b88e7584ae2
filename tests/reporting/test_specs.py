"""Tables and figures are what their YAML files and the arguments of their functions declare."""

from __future__ import annotations

import importlib
import inspect
import re

import pytest
from cases import python

from geosd.claims.ledger import ledger
from geosd.reporting.specs import (
    family_specs,
    output_kind,
    output_spec_declarations,
    output_spec_modules,
    output_specs,
)

SOURCE = "title: a\ncaption: b\nprotocol: [training.top_k]\n"
FUNCTION = "def plot(scores, top_k, models, shown=3):\n    pass\n"


@pytest.mark.parametrize("name", output_spec_declarations())
def test_an_output_reads_what_its_function_needs(name):
    module, spec = (
        importlib.import_module(f"geosd.reporting.{name}"),
        output_spec_declarations()[name],
    )
    declared = [*spec.reads, *(word.rpartition(".")[2] for word in spec.settings)]
    function = inspect.signature(getattr(module, output_kind(name).function))
    needed = [p.name for p in function.parameters.values() if p.default is p.empty]
    assert sorted(needed) == sorted(declared)


@pytest.mark.parametrize("name", output_spec_declarations())
def test_the_modules_that_are_found_by_name_have_the_functions_of_their_kind(name):
    own, writer = map(importlib.import_module, output_spec_modules(name))
    assert callable(getattr(own, output_kind(name).function)) and callable(writer.save)


def test_every_item_of_the_paper_that_a_claim_names_has_its_output():
    named = set(re.findall(r"(?:Table|Figure) \w+", " ".join(c.place for c in ledger())))
    assert len(named) > 10
    assert named - {"Table hparams"} <= {spec.paper for spec in output_specs().values()}


def test_declarations_are_read_without_importing_what_draws():
    code = "import sys, geosd.config; from geosd.reporting.specs import output_specs\n"
    code += "assert len(output_specs()) > 9\n"
    code += "sys.exit(bool({'pandas', 'matplotlib', 'torch'} & set(sys.modules)))"
    assert python("-c", code).returncode == 0


def test_a_module_without_a_declaration_is_none_of_them(tmp_path):
    (tmp_path / "table_plain.py").write_text("X = 1\n")
    (tmp_path / "figure_new.py").write_text(FUNCTION)
    (tmp_path / "figure_new.yaml").write_text(SOURCE)
    [(name, spec)] = output_specs(tmp_path).items()
    assert (name, spec.title, spec.reads) == ("figure_new", "a", ("scores",))
    assert spec.settings == ("protocol.training.top_k", "models")


def test_an_output_of_a_family_is_none_of_a_study(tmp_path):
    (tmp_path / "figure_new.py").write_text(FUNCTION)
    (tmp_path / "figure_new.yaml").write_text(f"{SOURCE}family: true\n")
    assert not output_specs(tmp_path) and [*family_specs(tmp_path)] == ["figure_new"]
    (tmp_path / "figure_of_files.py").write_text(FUNCTION.replace("scores", "states"))
    (tmp_path / "figure_of_files.yaml").write_text(f"{SOURCE}family: true\n")
    output_spec_declarations.cache_clear()
    with pytest.raises(ValueError, match=r"(?s)figure_of_files.py reads states, .*Hint: .* scores"):
        output_spec_declarations(tmp_path)


@pytest.mark.parametrize(
    ("text", "function", "expected"),
    [
        ("title: !!python/name:os.system", FUNCTION, "could not determine a constructor"),
        (SOURCE.replace("protocol", "protokol"), FUNCTION, "protokol"),
        (SOURCE.replace("[training.top_k]", "training.top_k"), FUNCTION, "protocol.* valid tuple"),
        (SOURCE.replace(" b", ' ""'), FUNCTION, "caption.* at least 1 character"),
        ("- title\n", FUNCTION, "must be a mapping"),
        (SOURCE, FUNCTION.replace("plot", "draw"), "'plot'"),
        (SOURCE, "def plot(", "never closed"),
        (SOURCE, None, "No such file"),
    ],
)
def test_what_cannot_be_read_names_the_file_and_what_is_allowed(tmp_path, text, function, expected):
    (tmp_path / "figure_new.yaml").write_text(text)
    if function is not None:
        (tmp_path / "figure_new.py").write_text(function)
    allowed = "keys are title.*has a function plot"
    with pytest.raises(ValueError, match=f"(?s)new.yaml is no declaration.*{expected}.*{allowed}"):
        output_specs(tmp_path)

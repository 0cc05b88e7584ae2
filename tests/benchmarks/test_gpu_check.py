"""The check of a CUDA machine, where there is none."""

import json
from pathlib import Path

import gpu_check
import gpu_report
import pytest
import torch
from cases import python
from synthetic_update import ALL_METHODS, METHODS, SyntheticBatch

from geosd.models.architectures import architecture

HEAVY = ("tyro", "pandas", "dvclive", "snakemake", "vllm", "matplotlib", "pydantic")


@pytest.mark.slow
@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a CUDA device here")
def test_without_cuda_it_says_so_and_checks_the_numerics(tmp_path, capsys):
    assert gpu_check.main(["--out", str(tmp_path)]) == 0
    text = (tmp_path / "cpu.md").read_text()
    assert "no CUDA device here" in text and "all within bounds" in text
    assert capsys.readouterr().out.startswith(text.rstrip("\n"))
    found = json.loads((tmp_path / "cpu.json").read_text())
    assert found["numerics"]["bf16 against fp32"].keys() == ALL_METHODS.keys()
    assert found["numerics"]["shards against a whole"].keys() == METHODS.keys()
    assert "updates" not in found and "CPU against CUDA" not in found["numerics"]
    assert found["carried"]["files"] > 50 and found["carried"]["mib"] < 2


@pytest.mark.slow
def test_a_wrong_gradient_in_bf16_is_out_of_bounds(tmp_path, monkeypatch):
    exact = gpu_check.first_update

    def wrong(ranks, device, method, compute, load):
        found = exact(ranks, device, method, compute, load)
        return found if compute is torch.float32 else found | {"gradient": -found["gradient"]}

    monkeypatch.setattr(gpu_check, "first_update", wrong)
    assert gpu_check.main(["--out", str(tmp_path)]) == len(ALL_METHODS) + len(METHODS)


@pytest.mark.slow
def test_the_dry_form_runs_every_part_and_says_that_no_time_means_anything(tmp_path):
    assert gpu_check.main(["--dry", "--out", str(tmp_path)]) == 0
    found = json.loads((tmp_path / "dry.json").read_text())
    assert {"one_card", "sampler", "loss", "inverses", "updates"} <= found.keys()
    assert "left_out" not in found
    assert [step["method"] for step in found["one_card"]] == list(ALL_METHODS)
    for step in found["one_card"]:
        assert sum(step["parts"].values()) - step["parts"]["K-FAC of it"] <= step["s"]
        assert (step["parts"]["K-FAC of it"] > 0) == (step["method"] == "GeoSD")
    assert found["sampler"]["tokens_per_s"] > 0 and found["loss"]["ms"] > 0
    text = (tmp_path / "dry.md").read_text()
    assert "No time or memory means anything" in text and "| TrOPD |" in text


def test_a_part_without_time_is_left_out_by_name():
    found = {}
    gpu_check.run_parts(found, [("loss", lambda: pytest.fail("it began"))], until=0.0)
    assert found == {"left_out": {"loss": "no time was left"}}


def test_geosds_operations_are_more_than_the_anchors_pass_and_no_more_than_the_papers():
    """The anchor's pass alone makes 11 units of 9; the paper has x 1.27 with K-FAC."""
    full = architecture("qwen3-8b")
    update = gpu_check.UpdateOperationsSize()
    kfac = gpu_check.kfac_units(full, update).total
    times = gpu_check.units_by_rule(update, kfac).total / gpu_check.units_by_rule(update).total
    assert 11 / 9 < times < 1.275


@pytest.mark.slow
def test_an_update_is_timed_and_stands_beside_the_papers():
    batch = SyntheticBatch(responses=2, tokens=32, prompt=16, privileged=24)
    device = torch.device("cpu")
    with gpu_check.alone(device) as ranks:
        methods = {
            name: gpu_check.timed(gpu_check.TINY, ranks, device, name, batch) for name in METHODS
        }
    assert all(each["s"] > 0 for each in methods.values())
    update = {"model": "Tiny", "blocks": 2, "measured_blocks": 1, "responses": 2, "tokens": 32}
    update["operations"] = 1.25
    costs = ({"s": 2.0, "gb": 10.0}, {"s": 3.0, "gb": 11.0}, {"s": 4.0, "gb": 12.0})
    methods = dict(zip(METHODS, costs, strict=True))
    text = "\n".join(gpu_report.described_cost({**update, "methods": methods}))
    assert "1 of 2 blocks of Tiny" in text and "K-FAC is 25% of GeoSD's time" in text
    assert "| GeoSD | 4.00 | 2.00 | 12.0 | 1.20 |" in text


def test_a_device_too_small_for_one_block_says_so():
    update = {"model": "Tiny", "blocks": 2, "measured_blocks": 0, "device_gb": 4.0}
    assert "Not one block of Tiny fits" in gpu_report.described_cost(update)[0]


@pytest.mark.parametrize(
    ("before", "after", "failed"), [(3.0, 0.01, 0), (3.0, 2.0, 1), (0.1, 0.01, 1)]
)
def test_vllm_must_leave_the_old_weights_for_the_new(before, after, failed):
    sync = {"version": "1", "parameters": 1e9, "s": 1.0, "tokens": 4}
    sync |= {"way": "files", "gap_before": before, "gap_after": after}
    assert gpu_report.described_sync(sync)[0] == failed


@pytest.mark.slow
def test_it_imports_nothing_beyond_torch_and_transformers():
    hidden = f"import sys\nfor name in {HEAVY}: sys.modules[name] = None\n"
    code = f"{hidden}import gpu_check"
    place = Path(gpu_check.__file__).parent
    python("-c", code, cwd=place, check=True)


def test_the_papers_8b_is_what_a_device_of_141_gb_cannot_hold_whole():
    full = architecture("qwen3-8b")
    assert 150e9 < gpu_check.state_bytes(full) < 170e9

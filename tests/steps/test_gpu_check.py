"""The check of a CUDA machine, where there is none."""

import subprocess
import sys

import pytest
import torch

from geosd.steps import gpu_check

HEAVY = ("tyro", "pandas", "dvclive", "snakemake", "vllm", "matplotlib", "pydantic")


@pytest.mark.slow
@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a CUDA device here")
def test_without_cuda_it_says_so_and_checks_the_numerics(tmp_path, capsys):
    assert gpu_check.main(["--out", str(tmp_path)]) == 0
    text = (tmp_path / "cpu.md").read_text()
    assert "no CUDA device here" in text and "all within bounds" in text
    assert capsys.readouterr().out.startswith(text.rstrip("\n"))


@pytest.mark.slow
def test_a_wrong_gradient_in_bf16_is_out_of_bounds(tmp_path, monkeypatch):
    exact = gpu_check.first_update

    def wrong(ranks, device, method, compute, load):
        found = exact(ranks, device, method, compute, load)
        return found if compute is torch.float32 else found | {"gradient": -found["gradient"]}

    monkeypatch.setattr(gpu_check, "first_update", wrong)
    assert gpu_check.main(["--out", str(tmp_path)]) == len(gpu_check.METHODS)


@pytest.mark.slow
def test_it_imports_nothing_beyond_torch_and_transformers():
    code = (
        f"import sys\nfor name in {HEAVY}: sys.modules[name] = None\nimport geosd.steps.gpu_check"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_papers_8b_is_what_a_device_of_141_gb_cannot_hold_whole():
    full = gpu_check.architecture("qwen3-8b")
    assert 150e9 < gpu_check.state_bytes(full) < 170e9

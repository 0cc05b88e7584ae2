"""What a step of distillation holds of its logits."""

import importlib
import multiprocessing

import pytest


@pytest.mark.slow
def test_in_chunks_a_longer_response_needs_hardly_more_memory_and_naively_in_proportion(
    root, monkeypatch
):
    monkeypatch.syspath_prepend(root / "analysis")
    measured = importlib.import_module("peak_memory")
    # A fork's peak begins at what it holds, and it need not import torch again.
    with multiprocessing.get_context("fork").Pool(1, maxtasksperchild=1) as processes:
        rows = [(128, 128), (256, 256), (256, 64)]
        naive, longer, chunked = processes.starmap(measured.step, rows, chunksize=1)
    whole = 256 * measured.VOCABULARY * 4 / 1e9  # one fp32 logit tensor of the longer response
    assert longer > 1.7 * naive
    assert longer > 3 * whole  # three views at least
    assert chunked < 0.6 * longer

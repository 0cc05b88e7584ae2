"""What a step of distillation holds of its logits."""

import subprocess
import sys

import pytest


@pytest.mark.slow
def test_in_chunks_a_longer_response_needs_hardly_more_memory_and_naively_in_proportion(root):
    def peak(tokens, chunk):
        command = [sys.executable, root / "analysis/peak_memory.py", str(tokens), str(chunk)]
        return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)

    naive, longer, chunked = peak(512, 512), peak(1024, 1024), peak(1024, 256)
    whole = 1024 * 151_936 * 4 / 1e9  # one fp32 logit tensor of the longer response
    assert longer > 1.7 * naive
    assert longer > 3 * whole  # three views at least
    assert chunked < 0.6 * longer

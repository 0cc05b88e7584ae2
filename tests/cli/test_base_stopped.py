"""The program of the rule `base` when a signal stops its pretraining."""

import os
import signal
import subprocess
import sys
import time

import pytest
import yaml

STEPS = 60


@pytest.fixture
def command(root, tmp_path):
    """The command that pretrains a small base model in few steps, and its scratch folder."""
    values = yaml.safe_load((root / "params.yaml").read_text())
    values["models"]["mini-qwen3-xs"]["base"]["pretraining"]["steps"] = STEPS
    params = tmp_path / "params.yaml"
    params.write_text(yaml.safe_dump(values))

    def of(name):
        folder = tmp_path / name
        options = ["--model", "mini-qwen3-xs", "--draw", "0", "--params", str(params)]
        options += ["--out", str(folder / "out"), "--scratch", str(folder / "scratch")]
        return [sys.executable, "-m", "geosd", "base-model", *options], folder

    return of


@pytest.mark.slow
def test_sigterm_saves_the_pretraining_and_the_next_start_ends_like_one_undisturbed(command, root):
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    started = dict(cwd=root, env=environment, stderr=subprocess.PIPE, text=True)
    whole, undisturbed = command("whole")
    subprocess.run(whole, check=True, **started)
    words, folder = command("stopped")
    process = subprocess.Popen(words, **started)
    shown = ""
    while f"0/{STEPS}" not in shown:  # the bar, which is drawn as the loop begins
        assert process.poll() is None, "the run ended before it could be asked to stop"
        shown += process.stderr.read(1)
    process.send_signal(signal.SIGTERM)
    began = time.monotonic()
    _, stderr = process.communicate(timeout=120)
    assert time.monotonic() - began < 30
    assert process.returncode == 75
    assert "asked to stop after" in stderr and "Traceback" not in stderr
    assert list(folder.rglob("state.pt"))
    assert not list(folder.rglob("model.safetensors"))
    subprocess.run(words, check=True, **started)
    for name in ("model.safetensors", "recipe.json"):
        (one,), (other,) = (sorted(each.rglob(name)) for each in (undisturbed, folder))
        assert one.read_bytes() == other.read_bytes()
    assert not list(folder.rglob("state.pt"))

"""analysis/head_precision.py on a tiny model: its columns, and that training's logits are exact."""

import runpy


def test_the_gradient_of_training_is_that_of_float64_and_bfloat16s_is_not(
    root, tmp_path, monkeypatch, capsys
):
    monkeypatch.syspath_prepend(str(root / "benchmarks"))
    import synthetic

    folder = synthetic.save(synthetic.SHAPES["tiny"], tmp_path / "model")
    runpy.run_path(str(root / "analysis/head_precision.py"))["main"](folder, 2, 4)
    rows = [line.split() for line in capsys.readouterr().out.splitlines() if "moved" in line]
    assert len(rows) == 4
    for _, _, _, *distances, half, _, training, _, _, _ in rows:
        assert len(distances) == 4
        assert float(training) > 0.999 and float(half) < 0.999

"""The page of `dvc plots show` in a real browser that finds no host: every picture is drawn."""

from __future__ import annotations

import io
import shutil
import subprocess
import sys

import pytest
import yaml
from matplotlib.figure import Figure
from PIL import Image


@pytest.mark.slow
def test_the_page_of_plots_is_drawn_without_a_network(browser, root, tmp_path):
    for name in (".dvc/config", "dvc.yaml", "params.yaml", "workflow/dvc/settings.yaml"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(root / name, tmp_path / name)
    plots = yaml.safe_load((tmp_path / "dvc.yaml").read_text(encoding="utf-8"))["plots"]
    assert "figures/quick/figure_training.svg" in plots
    for path in plots:
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        figure = Figure()
        figure.subplots().plot([0, 1], [1, 0])
        figure.savefig(tmp_path / path)
    subprocess.run(["git", "init", "--quiet", str(tmp_path)], check=True)
    subprocess.run([sys.executable, "-m", "dvc", "plots", "show"], cwd=tmp_path, check=True)

    urls = []
    page = browser.new_page()
    page.on("request", lambda request: urls.append(request.url))
    page.goto((tmp_path / "dvc_plots/index.html").as_uri())
    pictures = page.locator("img").all()
    assert len(pictures) == len(plots)
    for picture in pictures:
        assert picture.evaluate("img => img.decode().then(() => img.naturalWidth, () => 0)") > 100
        seen = Image.open(io.BytesIO(picture.screenshot())).convert("RGB")
        assert len(set(seen.get_flattened_data())) > 20
    assert [url for url in urls if not url.startswith("file:")] == []
    page.close()

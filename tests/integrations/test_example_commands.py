"""The command in the head of each example, run as it stands there."""

import ast
import importlib.util
import shlex

import pytest
from cases import python

EXPECTED = {
    "geosd_loop": "step   9   loss",
    "kfac_any_loop": "K-FAC + SGD",
    "objective_any_loop": "geosd   overlap with the teacher",
    "trl_geosd": "'geosd/kfac_g_max'",
}


@pytest.mark.slow
@pytest.mark.parametrize("name", EXPECTED)
def test_the_command_in_the_head_runs_and_ends(root, tmp_path, name):
    if name == "trl_geosd" and not importlib.util.find_spec("trl"):
        pytest.skip("make test-core runs this where TRL is")
    head = ast.get_docstring(ast.parse((root / f"examples/{name}.py").read_text()))
    (command,) = (each for each in head.split("\n\n") if each.lstrip().startswith("python "))
    called, *words = shlex.split(command.replace("\\\n", " "))
    assert called == "python" and words[0] == f"examples/{name}.py"
    words = [word.replace("scratch/", f"{tmp_path}/") for word in words]
    quiet = {"HF_HUB_OFFLINE": "1", "HF_HOME": str(tmp_path / "hub")}
    done = python(*words, environment=quiet, cwd=root, timeout=900)
    assert done.returncode == 0, done.stderr
    assert EXPECTED[name] in done.stdout
    if name == "trl_geosd":
        assert (tmp_path / "trl_geosd/model.safetensors").exists()
        assert (tmp_path / "trl_geosd/checkpoint-20/kfac.pt").exists()

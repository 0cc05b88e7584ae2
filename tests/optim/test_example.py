import runpy
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "printed"), [("kfac_any_loop", "K-FAC + SGD"), ("objective_any_loop", "geosd")]
)
def test_the_example_runs_and_its_asserts_hold(name, printed, capsys):
    runpy.run_path(str(EXAMPLES / f"{name}.py"), run_name="__main__")
    assert printed in capsys.readouterr().out

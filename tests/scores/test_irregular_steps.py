"""Irregular steps counted from a step log, against a count by hand."""

from __future__ import annotations

from geosd.scores.irregular_steps import IRREGULAR, count_irregular_steps

COLUMNS = "curvature/float64_blocks rollout/accuracy rollout/empty rollout/truncated update/skipped"
LOG = f"""step,{COLUMNS.replace(" ", ",")}
0,,0.0,,1.0,
1,,1.0,0.25,0.5,1.0
2,3.0,0.0,,1.0,
3,1.0,0.5,,0.0,
4,,1.0,0.5,1.0,
"""


def test_steps_are_counted_by_hand_and_the_trained_student_is_no_step(tmp_path):
    (tmp_path / "steps.csv").write_text(LOG)
    assert count_irregular_steps(tmp_path / "steps.csv", 4) == {
        "skipped": 1,
        "blocks in float64": 2,
        "an empty response": 1,
        "all responses truncated": 2,
        "all responses right": 1,
        "all responses wrong": 2,
    }


def test_a_log_without_the_columns_has_no_such_step(tmp_path):
    (tmp_path / "steps.csv").write_text("step,loss/total\n0,0.5\n1,0.4\n2,\n")
    assert count_irregular_steps(tmp_path / "steps.csv", 2) == dict.fromkeys(IRREGULAR, 0)

"""Words of two machines compared: counts by hand, and ledgers that do not belong together."""

from __future__ import annotations

import runpy
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

PROGRAM = Path(__file__).parents[2] / "analysis/word_changes.py"
changes, main = (runpy.run_path(str(PROGRAM))[name] for name in ("changes", "main"))


def ledger(*rows: tuple) -> pd.DataFrame:
    """A ledger of rows (claim, word, effect, low, high)."""
    frame = pd.DataFrame(rows, columns=["claim", "word", "effect", "low", "high"])
    part = frame["claim"].map(lambda name: "computed" if name == "sum" else "other")
    words = {"study": "s", "model": "m", "metric": "id", "comparison": "a - b > 0", "note": ""}
    return frame.assign(part=part, **words)


FIRST = ledger(
    ("same", "agrees", 3.0, 2.0, 4.0),
    ("reversed", "agrees", 3.0, 2.0, 4.0),
    ("weaker", "agrees", 3.0, 2.0, 4.0),
    ("of one alone", "not exercised", np.nan, np.nan, np.nan),
    ("never", "not exercised", np.nan, np.nan, np.nan),
    ("sum", "agrees", 1.0, np.nan, np.nan),
)
SECOND = ledger(
    ("sum", "opposite", 2.0, np.nan, np.nan),
    ("never", "not exercised", np.nan, np.nan, np.nan),
    ("of one alone", "too small to tell", 1.0, -1.0, 3.0),
    ("weaker", "too small to tell", 1.0, -1.0, 3.1),  # 1.0 lies below the first one's interval
    ("reversed", "opposite", -3.0, -4.0, -2.0),
    ("same", "agrees", 3.5, 2.5, 4.5),
)


def test_the_counts_are_those_made_by_hand():
    found = changes(FIRST, SECOND)
    assert (found.rows, found.changed, found.reversed) == (4, 3, 1)
    assert (found.effects, found.outside) == (3, 2)
    assert changes(SECOND, FIRST).outside == 2
    assert found.words.loc["agrees", "too small to tell"] == 1


def test_a_ledger_compared_with_itself_has_no_change():
    found = changes(FIRST, FIRST)
    assert (found.changed, found.reversed, found.outside) == (0, 0, 0)


def test_ledgers_of_other_claims_are_refused():
    with pytest.raises(ValueError, match="rows of one ledger only: never of m.\nHint: "):
        changes(FIRST, SECOND[SECOND["claim"] != "never"])


def test_files_are_read_and_counted(tmp_path, capsys):
    for name, frame in (("a", FIRST), ("b", SECOND)):
        numbers = "confidence claimed_from claimed_to paper_effect holds_paper".split()
        frame = frame.assign(**dict.fromkeys(numbers, np.nan))
        frame = frame.assign(**dict.fromkeys("n_a n_b units".split(), 3))
        frame.to_csv(tmp_path / f"{name}.csv", index=False)
    main((tmp_path / "a.csv", tmp_path / "b.csv"))
    last = [cell.strip() for cell in capsys.readouterr().out.splitlines()[-1].split("|")]
    assert last[2:7] == ["4", "3 (75 %)", "1", "3", "2"]

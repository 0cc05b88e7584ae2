"""The step log, kept by dvclive, so that a run is watched in tools people have.

dvclive appends one line a step to one table per metric, under `plots/metrics/`. A run that was
killed after its last saved state has logged steps it will do again: those lines are dropped before
it goes on, so the log of a resumed run is that of an undisturbed one.
"""

from __future__ import annotations

import math
from pathlib import Path

import pandas as pd
from dvclive import Live

from geosd.files import atomic_write, write_json


class StepLog:
    """One value per metric and step.

    Args:
        folder: Where dvclive keeps the run's log.
        start: The first step to be logged; what the folder holds of it and later is dropped.
    """

    def __init__(self, folder: Path, start: int) -> None:
        """Open the log, at `start`."""
        self.folder = folder
        for path in self._tables():
            _drop_from(path, start)
        if start:
            write_json(folder / "metrics.json", {"step": start - 1})
        # No experiment refs, no dvc.yaml of its own, no report: only the log.
        self.live = Live(
            str(folder), resume=start > 0, save_dvc_exp=False, dvcyaml=None, report=None
        )
        self.live.step = start

    def write(self, values: dict[str, float]) -> None:
        """Log one step. A metric without a value at this step is left out, never invented."""
        for name, value in values.items():
            if not math.isnan(value):
                self.live.log_metric(name, value)
        # Not next_step(): for DVC Studio it reads every table again at every step, so the time of a
        # run would grow with the square of its steps.
        self.live.make_summary()
        self.live.step += 1

    def close(self) -> None:
        """Write what is not written yet."""
        self.live.end()

    def table(self) -> pd.DataFrame:
        """All metrics side by side: one row a step, one column a metric, sorted by name."""
        columns = []
        for path in self._tables():
            name = path.relative_to(self._root()).with_suffix("").as_posix()
            values = pd.read_csv(path, sep="\t", index_col="step")
            columns.append(values.iloc[:, 0].rename(name))
        if not columns:
            return pd.DataFrame(index=pd.Index([], name="step"))
        return pd.concat(sorted(columns, key=lambda c: c.name), axis=1).sort_index()

    def _root(self) -> Path:
        return self.folder / "plots" / "metrics"

    def _tables(self) -> list[Path]:
        return sorted(self._root().rglob("*.tsv"))


def _drop_from(path: Path, start: int) -> None:
    """Keep the whole lines of steps before `start`; a line cut short by a kill is dropped too."""
    head, *lines = path.read_text(encoding="utf-8").split("\n")
    kept = [line for line in lines[:-1] if int(line.split("\t")[0]) < start]
    if not kept:
        path.unlink()
        return
    with atomic_write(path) as temporary:
        temporary.write_text("\n".join([head, *kept, ""]), encoding="utf-8")

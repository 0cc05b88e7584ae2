"""The step log: one table per metric, kept by DVCLive, and any other trackers.

All trackers are accelerate's. DVCLive appends one line a step to each table, under
`plots/metrics/`. Lines of steps that a killed run will do again are dropped before it goes on, so
the log of a resumed run is that of an undisturbed one.
"""

import math
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
from accelerate import Accelerator
from accelerate.tracking import GeneralTracker, get_available_trackers
from dvclive import Live

from geosd.dotted_keys import dotted_items
from geosd.files import sync_file, write_json, write_text
from geosd.training.processes import training_process_state

TRACKERS = ("tensorboard", "wandb", "trackio")


class CutStepLogError(ValueError):
    """A step log that lacks steps of its run: somebody removed it while the run went on."""


class StepLog:
    """Step log of a run: one value per metric and step, kept by DVCLive and other trackers.

    It begins at the step `start`: later lines are dropped. Other trackers are those of `TRACKERS`
    or of accelerate; each gets the run's name and settings. The errors are those of
    `check_step_log_trackers`.
    """

    def __init__(
        self,
        folder: Path,
        start: int,
        trackers: Sequence[str | GeneralTracker] = (),
        name: str = "geosd",
        settings: Mapping[str, Any] | None = None,
    ) -> None:
        check_step_log_trackers(trackers)
        self.folder, self.tables = folder, folder / "plots" / "metrics"
        for path in self._tables():
            _drop_from(path, start)
        self._check_whole(start)
        if start:
            write_json(folder / "metrics.json", {"step": start - 1})
        # No experiment refs, no dvc.yaml of its own, no report: only the log.
        live = _StepLive(
            str(folder), resume=start > 0, save_dvc_exp=False, dvcyaml=None, report=None
        )
        self.step = start
        training_process_state()  # or accelerate would take a device of its own choice
        self.accelerator = Accelerator(log_with=["dvclive", *trackers], project_dir=str(folder))
        options = {"dvclive": {"live": live}, "wandb": {"name": name, "dir": str(folder)}}
        self.accelerator.init_trackers("geosd", init_kwargs=options)
        for tracker in self.accelerator.trackers:
            if tracker.name != "dvclive":
                tracker.store_init_configuration(_for_trackers(settings or {}))

    def write(self, values: dict[str, float]) -> None:
        """Log one step. A metric without a value at this step is left out, never invented."""
        known = {name: value for name, value in values.items() if not math.isnan(value)}
        self.accelerator.log(known, step=self.step)
        self.step += 1

    def sync(self) -> None:
        """Wait until DVCLive's tables are on the disk: a power cut takes no line of them then.

        Raises:
            CutStepLogError: They lack a step of the run.
        """
        self._check_whole(self.step)
        for path in self._tables():
            sync_file(path)

    def close(self) -> None:
        """Write what is not written yet."""
        for tracker in self.accelerator.trackers:  # end_training() would end the process group too
            tracker.finish()

    def table(self) -> pd.DataFrame:
        """All metrics side by side: one row a step, one column a metric, sorted by name.

        Raises:
            CutStepLogError: A step of the run is missing.
        """
        self._check_whole(self.step)
        columns = []
        for path in self._tables():
            name = path.relative_to(self.tables).with_suffix("").as_posix()
            values = pd.read_csv(path, sep="\t", index_col="step")
            columns.append(values.iloc[:, 0].rename(name))
        if not columns:
            return pd.DataFrame(index=pd.Index([], name="step"))
        return pd.concat(sorted(columns, key=lambda c: c.name), axis=1).sort_index()

    def _check_whole(self, end: int) -> None:
        """Refuse a log without a row of each step before `end`: its run would look proven."""
        lines = (
            line for path in self._tables() for line in path.read_text("utf-8").split("\n")[1:]
        )
        logged = {int(line.split("\t")[0]) for line in lines if line}
        missing = sorted(set(range(end)) - logged)
        if missing:
            raise CutStepLogError(
                f"{self.folder} lacks {len(missing)} of {end} steps of its run, the first"
                f" {missing[0]}: it was removed or cut while the run went on.\nHint: `rm -r"
                f" {shlex.quote(str(self.folder.parent))}`, and start the same command again: the"
                " run begins anew."
            )

    def _tables(self) -> list[Path]:
        return sorted(self.tables.rglob("*.tsv"))


def check_step_log_trackers(trackers: Sequence[str | GeneralTracker]) -> None:
    """Refuse trackers that do not exist (ValueError) or are not installed (ModuleNotFoundError)."""
    installed = {str(tracker) for tracker in get_available_trackers()}
    for name in trackers:
        if isinstance(name, GeneralTracker):
            continue
        if name not in TRACKERS:
            raise ValueError(
                f"{name!r} is no tracker; allowed are {', '.join(TRACKERS)}.\nHint: DVCLive keeps"
                " the step log in any case and needs no argument."
            )
        if name not in installed:
            raise ModuleNotFoundError(
                f"the tracker {name} is not installed here.\nHint: pip install {name}, or leave it"
                " out: DVCLive keeps the step log in any case."
            )


class _StepLive(Live):
    def next_step(self) -> None:
        """End a step. DVCLive's own reads every table again for DVC Studio, at each step."""
        self.make_summary()
        self.step += 1


def _for_trackers(settings: Mapping[str, Any]) -> dict[str, str | float]:
    """Nested settings as trackers take them: objective/name, optimiser/kfac/blocks, ..."""
    return {
        name.replace(".", "/"): value if isinstance(value, bool | int | float) else str(value)
        for name, value in dotted_items(settings)
    }


def _drop_from(path: Path, start: int) -> None:
    """Keep the whole lines of steps before `start`; a line cut short by a kill is dropped too."""
    head, *lines = path.read_text(encoding="utf-8").split("\n")
    kept = [line for line in lines[:-1] if int(line.split("\t")[0]) < start]
    if not kept:
        path.unlink()
        return
    write_text(path, "\n".join([head, *kept, ""]))

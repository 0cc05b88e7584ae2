"""Show what a study that is under way has found so far; no result of the study is touched."""

import sys
from contextlib import suppress
from pathlib import Path

from rich.console import Console
from rich.markdown import Markdown

from geosd.cli.analyse import analysed
from geosd.config import load, resolve_study, settings
from geosd.config.output_needs import unmet_needs
from geosd.config.run_folders import RunFolders, RunFoldersRow
from geosd.provenance.manifest import DamagedManifestError, read_manifest
from geosd.reporting import saved_tables, specs
from geosd.reporting.preview_table import preview_open_signs, preview_table
from geosd.scores.score_table import ScoredRun


def main(
    study: str | None = None,
    params: Path = Path("params.yaml"),
    out: Path = Path("scratch/preview"),
) -> None:
    """Show a study's accuracies so far, and what missing seeds may change.

    Args:
        study: Name of the study; default: the one that params.yaml names.
        out: Where the table and the frontier are written, in a folder of the study's name.
    """
    resolved = resolve_study(load(params), study)
    name = resolved.name
    rows = RunFolders(resolved).rows()
    done = {}
    for row in rows:
        if _is_evaluated(row):
            done[ScoredRun(row.model, row.variant, row.seed, row.draw)] = row
    if not done:
        sys.exit(
            f"No run of study {name} has been evaluated yet, of {len(rows)}.\n"
            f"Hint: `make run STUDY={name}`, or on a cluster docs/cluster.md."
        )
    made, _ = analysed(done, settings("analyse", resolved))
    scores = made["scores"]
    there = {run.model for run in done}
    shown = [model for model in resolved.models if model in there]
    methods = resolved.methods
    seeds = len(resolved.seeds)
    table = preview_table(scores, shown, methods, seeds)
    folder = out / name
    console = Console()
    written = saved_tables.save(table, folder, table.name)
    console.print(Markdown((folder / "preview.md").read_text(encoding="utf-8")))
    words = [f"PREVIEW of study {name}: {len(done)} of {len(rows)} runs are evaluated."]
    undecided = preview_open_signs(scores, shown, methods, seeds)
    if undecided:
        words.append(f"With all seeds, Δ OOD may have either sign: {', '.join(undecided)}.")
    if 1 < len(resolved.base_draws) < seeds:
        words.append("Seeds of one draw of the base model are alike: true intervals are wider.")
    spec = specs.output_specs()["figure_frontier"]
    with_base = {run.model for run in done if run.variant == "pi_0"}
    compared = [model for model in shown if model in with_base]
    if compared and not any(unmet_needs(resolved, spec)):
        given = settings("figure_frontier", resolved) | {"models": compared}
        written += specs.render_output_spec("figure_frontier", {"scores": scores}, given, folder)
    words += [f"Files    {path}" for path in written if path.suffix in (".md", ".pdf")]
    console.print("\n".join(words), markup=False, highlight=False, soft_wrap=True)


def _is_evaluated(row: RunFoldersRow) -> bool:
    """Whether the samples of a run, and the log of its training, are there and whole."""
    with suppress(DamagedManifestError):  # absent, or not whole
        for folder in filter(None, [row.evaluate, row.train]):
            read_manifest(Path(folder))
        return True
    return False

"""What of the results that are there is still current."""

import datetime
import sys
from pathlib import Path

from geosd.config import Family, Study, load, resolve_study, resolve_study_or_family
from geosd.config import settings as settings_of
from geosd.config.kept_weights import weight_readers
from geosd.config.run_folders import RESULTS, SHARED, RunFolders, read_run_folders, run_of
from geosd.files import DamagedFileError
from geosd.provenance import staleness
from geosd.provenance.code import code_digest, code_of
from geosd.provenance.manifest import MANIFEST, read_manifest, write_manifest
from geosd.provenance.staleness import Current, code_for_staleness
from geosd.provenance.workflow_records import workflow_record_code


def main(study: str, params: Path = Path("params.yaml"), figures: Path = Path("figures")) -> None:
    """List results whose inputs, settings or code have changed; status 1 if any.

    Of a family of studies it is what is shipped of the family.

    It reads manifests and nothing of the workflow's, so it also judges results that were copied
    here.
    """
    resolved = resolve_study_or_family(load(params), study)
    if isinstance(resolved, Family):
        from geosd.cli.stale_family import say_stale_family  # here, because it loads pandas

        say_stale_family(resolved, figures)
        return
    results = _current_results(resolved, figures)
    weights = weight_readers(resolved) if resolved.overlay.keep == "samples" else {}
    runs = {run_of(file) for file in weights}
    reasons = staleness.stale_results(
        results, lambda name: name.endswith(".safetensors") and run_of(name) in runs
    )
    if not reasons:
        raise SystemExit(
            f"Study {study} has no results with a manifest.\nHint: `make run STUDY={study}` makes"
            f" it, `make restore STUDY={study}` fetches it."
        )
    outdated = {result: why for result, why in reasons.items() if why}
    for result, why in outdated.items():
        print(result, *why, sep="\n    ")
    print(f"{len(outdated)} of {len(reasons)} results of study {study} are out of date.")
    sys.exit(bool(outdated))


def _current_results(study: Study, figures: Path) -> dict[Path, Current]:
    """The results of a study, shared ones too, and what would make each of them now.

    Each is a folder, or a manifest that shares one.
    """
    former = _former(study)
    results = {}
    for result, (rule, *of_rule) in RunFolders(study).results(str(figures)).items():
        settings = settings_of(rule, study, *of_rule)
        results[Path(result)] = Current(settings, code_of(rule, settings), former.get(result))
    return results


def _former(study: Study) -> dict[str, Path]:
    """Folder of a result -> another one, which the index still gives: its settings were others."""
    index = Path(RESULTS, study.name, "runs.csv")
    if not index.exists():
        return {}
    try:
        recorded = {(row.model, row.variant, row.seed): row for row in read_run_folders(index)}
    except DamagedFileError:  # or of a version with other columns: the rule `runs` writes it anew
        return {}
    moved = {}
    for row in RunFolders(study).rows():
        before = recorded.get((row.model, row.variant, row.seed), row)
        for step in ("base", "train", "evaluate"):
            if getattr(before, step) != getattr(row, step):
                moved[getattr(row, step)] = Path(getattr(before, step))
    return moved


def accept_stale_results(
    study: str, params: Path = Path("params.yaml"), figures: Path = Path("figures")
) -> None:
    """Take the results of a study as made by today's code.

    For an edit that changes no number. Each manifest says so under `accepted`, and Snakemake's
    records follow, so `make stale` and the next plan have nothing to say of that code. Changed
    settings and inputs stay what they are. Tables, figures and pages have no manifest in which to
    say so; they are drawn anew.
    """
    resolved = resolve_study(load(params), study)
    today = datetime.datetime.now(datetime.UTC).date().isoformat()
    found = accepted = 0
    for result, current in _current_results(resolved, figures).items():
        file = result if result.name.endswith(MANIFEST) else result / MANIFEST
        if not file.is_file():
            continue
        found += 1
        manifest = read_manifest(file.parent, file.name)
        if staleness.accept_staleness(manifest, current.code, today):
            accepted += 1
            write_manifest(file, manifest)
        if code_for_staleness(manifest) == current.code:  # so is a call that was killed made good
            for name in (*manifest["outputs"], file.name):
                workflow_record_code((file.parent / name).as_posix(), code_digest(current.code))
    # What was fetched has no manifest: its hashes were checked, whatever code did so.
    workflow_record_code(f"{RunFolders(resolved).data}/raw.json", code_digest(code_of("fetch")))
    print(f"{accepted} of {found} results of study {study} are taken as made by today's code.")


def list_stale_shared(params: Path = Path("params.yaml")) -> None:
    """List shared results that are not current any more: no study of params.yaml has them.

    Changed settings lead to other folders and leave the old ones, for the case that they are
    changed back.
    """
    loaded = load(params)
    used = {
        Path(folder)
        for name in loaded.studies
        for folder in RunFolders(resolve_study(loaded, name)).shared()
    }
    for kind in SHARED:
        depth = "*/*/*" if kind in ("train", "evaluate") else "*"
        for folder in sorted(Path(RESULTS, kind).glob(depth)):
            if folder.is_dir() and folder not in used:
                print(folder)

"""What a shipped family was made of, compared with what there is now."""

import sys
from pathlib import Path

from geosd.cli import ship_family
from geosd.config import Family
from geosd.provenance.staleness import stale_settings
from geosd.reporting.shipping import MANIFEST, changed_shipped_files, read_shipped


def say_stale_family(family: Family, figures: Path) -> None:
    """List what a shipped family was made of that is another now; status 1 if anything.

    Its outputs have no manifests but the one that is shipped with them.
    """
    folder = figures / family.name
    if not (folder / MANIFEST).exists():
        raise SystemExit(
            f"Family {family.name} is not shipped: nothing says what it was made of.\nHint: `make"
            f" ship STUDY={family.name}` ships it, `make stale STUDY=NAME` judges one of its"
            f" studies: {', '.join(family.studies)}."
        )
    shipped = read_shipped(folder)
    outputs, studies = ship_family.ship_family_settings(family)
    code = ship_family.ship_family_code(family.outputs)
    reasons = [
        f"output {name} has changed" for name in changed_shipped_files(folder, shipped.files)
    ]
    reasons += [
        f"input {name} has changed" for name in changed_shipped_files(folder, shipped.inputs)
    ]
    if [*shipped.outputs] != [*family.outputs]:
        reasons.append("the list of its outputs has changed")
    recorded = {"studies": shipped.studies, "outputs": shipped.outputs}
    reasons += stale_settings(recorded, {"studies": studies, "outputs": outputs})
    changed = {name for name, _ in code.items() ^ shipped.code.items()}
    reasons += [f"code {name} has changed" for name in sorted(changed)]
    if reasons:
        print(folder, *reasons, sep="\n    ")
    print(f"{int(bool(reasons))} of 1 results of family {family.name} are out of date.")
    sys.exit(bool(reasons))

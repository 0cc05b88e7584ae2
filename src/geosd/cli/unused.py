"""List the shared results that no study of params.yaml has any more: what may be deleted.

Changed settings lead to other folders and leave the old ones, for the case that they are changed
back. This lists them, one a line.
"""

from __future__ import annotations

from pathlib import Path

from geosd.cli import begin
from geosd.config import load, resolve
from geosd.config.run_folders import RESULTS, SHARED, RunFolders


def main(params: Path = Path("params.yaml")) -> None:
    """List the unused results folders: shared ones that no study of params.yaml has any more.

    Args:
        params: The configuration.
    """
    loaded = load(params)
    used = {
        Path(folder)
        for name in loaded.studies
        for folder in RunFolders(resolve(loaded, name)).shared()
    }
    for kind in SHARED:
        depth = "*/*/*" if kind in ("train", "evaluate") else "*"
        for folder in sorted(Path(RESULTS, kind).glob(depth)):
            if folder.is_dir() and folder not in used:
                print(folder)


if __name__ == "__main__":
    begin(main)

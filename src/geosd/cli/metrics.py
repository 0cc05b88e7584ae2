"""Write the accuracies of shipped studies, which git keeps, for `dvc metrics show`."""

from pathlib import Path

from geosd.files import write_json
from geosd.reporting.shipping import MANIFEST, read_shipped, source_tables
from geosd.scores.dvc_metrics import dvc_metrics
from geosd.scores.tidy import read_tidy


def main(figures: Path = Path("figures"), out: Path = Path("docs/metrics")) -> None:
    """Write a file of accuracies for each shipped study that shows the main table.

    Args:
        figures: Where the outputs of studies lie; those with a manifest are shipped.
    """
    for folder in sorted(path.parent for path in figures.glob(f"*/{MANIFEST}")):
        if "table_main" in read_shipped(folder).outputs:
            scores = read_tidy("scores", source_tables(folder)["scores"])
            write_json(out / f"{folder.name}.json", dvc_metrics(scores))

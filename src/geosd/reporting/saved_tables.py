"""The files of a table: CSV for programs, Markdown for terminals, booktabs for papers."""

from pathlib import Path

from geosd.files import write_text
from geosd.reporting.latex_tables import to_latex
from geosd.reporting.tables import Table, table_to_csv, table_to_markdown


def save(table: Table, folder: Path | str, name: str = "") -> list[Path]:
    """Save a table as CSV, Markdown and LaTeX; ValueError if no row has a number or a word."""
    if all(cell.value is None for row in table.rows for cell in row.cells):
        raise ValueError(
            f"table {name or table.name} is empty: of {len(table.rows)} rows none has a cell with a"
            " value.\nHint: the study has nothing that it shows; take it from the study's"
            " `outputs`."
        )
    forms = {"csv": table_to_csv(table), "md": table_to_markdown(table), "tex": to_latex(table)}
    paths = [Path(folder) / f"{name or table.name}.{ending}" for ending in forms]
    for path, text in zip(paths, forms.values(), strict=True):
        write_text(path, text)
    return paths

"""Write the report with Snakemake, and mend what its template says to the browser's console.

    report.py REPORT.html COMMAND ...

COMMAND is Snakemake with everything but where the report goes. Its template carries Tailwind's
browser build, which warns of itself at each start, and charts of an old Vega-Lite, whose embedded
successor draws them and warns: a reader who looks for errors must find none that mean nothing.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from pathlib import Path

from geosd.files import write_text

MENDED = (
    (re.compile(r'console\.warn\("cdn\.tailwindcss\.com should not be used in[^"]*"\);'), ""),
    (re.compile(r"(schema/vega-lite/)v3\.json"), r"\1v5.json"),
    (re.compile("<title>Snakemake Report</title>"), "<title>Geometric Self-Distillation</title>"),
)


def mended(html: str) -> str:
    """The report without the messages that its template writes whatever it shows."""
    for found, put in MENDED:
        html = found.sub(put, html)
    return html


def main(report: Path, command: list[str]) -> int:
    """The command's exit status; the report appears only where it is whole."""
    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder) / "report.html"
        style = "workflow/report/style.css"
        asked = ["--report", str(made), "--report-stylesheet", style]
        status = subprocess.run([*command, *asked]).returncode
        if status == 0:
            write_text(report, mended(made.read_text(encoding="utf-8")))
    return status


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), sys.argv[2:]))

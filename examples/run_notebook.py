"""Run the cells of a notebook in their order, and store what they give in it.

    python examples/run_notebook.py examples/geosd_tour.ipynb

Nothing of Jupyter is needed: a cell is Python, its last expression is shown as text, and a figure
of matplotlib as SVG. tests/docs/test_notebook.py runs the cells again, and compares.
"""

import ast
import contextlib
import io
import json
import sys
import time
from pathlib import Path
from typing import Any

import matplotlib
from matplotlib.figure import Figure

SVG = "image/svg+xml"


def run_cells(notebook: dict[str, Any]) -> list[list[dict[str, Any]]]:
    """The outputs of each cell of code, as notebooks store them; an error is the cell's own."""
    namespace: dict[str, Any] = {"__name__": "__main__"}
    outputs = []
    for number, cell in enumerate(code_cells(notebook), start=1):
        body = ast.parse("".join(cell["source"])).body
        last = body.pop() if body and isinstance(body[-1], ast.Expr) else None
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(ast.Module(body, []), f"cell {number}", "exec"), namespace)
            value = None
            if last is not None:
                expression = ast.Expression(last.value)
                value = eval(compile(expression, f"cell {number}", "eval"), namespace)
        outputs.append([*_stream(printed.getvalue()), *_result(value, number)])
    return outputs


def code_cells(notebook: dict[str, Any]) -> list[dict[str, Any]]:
    """The cells of code of a notebook."""
    return [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]


def _stream(text: str) -> list[dict[str, Any]]:
    if not text:
        return []
    return [{"name": "stdout", "output_type": "stream", "text": text.splitlines(keepends=True)}]


def _result(value: Any, number: int) -> list[dict[str, Any]]:
    if value is None:
        return []
    data = {"text/plain": repr(value).splitlines(keepends=True)}
    if isinstance(value, Figure):
        svg = io.StringIO()
        with matplotlib.rc_context({"svg.hashsalt": "geosd"}):  # ids are random otherwise
            value.savefig(svg, format="svg", metadata={"Date": None})
        data = {SVG: svg.getvalue().splitlines(keepends=True), "text/plain": ["a figure"]}
    return [
        {"data": data, "execution_count": number, "metadata": {}, "output_type": "execute_result"}
    ]


def main(file: str) -> None:
    """Run a notebook, store the outputs of its cells in it, and say how long that took."""
    path, began = Path(file), time.process_time()
    notebook = json.loads(path.read_text(encoding="utf-8"))
    outputs = run_cells(notebook)
    for number, cell in enumerate(code_cells(notebook), start=1):
        cell["outputs"], cell["execution_count"] = outputs[number - 1], number
    path.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    print(f"{file}: {len(outputs)} cells of code, {time.process_time() - began:.0f} CPU seconds")


if __name__ == "__main__":
    main(*sys.argv[1:])

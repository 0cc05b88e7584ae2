"""The shares of responses with a phrase, by hand from six responses of two methods."""

import json
import runpy

from geosd.config.run_folders import COLUMNS


def response(number, text, finish):
    return {
        **{"benchmark": "id", "problem_id": "p", "sample": number, "text": text, "tokens": 3},
        **{"answer": None, "correct": False, "finish": finish},
    }


def test_a_row_is_over_all_seeds_of_a_method(root, tmp_path, capsys):
    responses = {
        ("pi_0", 0): [response(0, "Answer: 3", "stop")],
        ("pi_0", 1): [response(0, "Answer: 4", "stop")],
        ("geosd", 0): [response(0, "Answer: 3. Answer: 4", "stop"), response(1, "on", "length")],
        ("geosd", 1): [response(0, "Reference: 3", "length"), response(1, "Answer:", "length")],
    }
    lines = [",".join(COLUMNS)]
    for (method, seed), rows in responses.items():
        folder = tmp_path / f"{method}-{seed}"
        folder.mkdir()
        (folder / "samples.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        lines.append(f"m,{method},{seed},0,base,,{folder},")
    index = tmp_path / "runs.csv"
    index.write_text("\n".join(lines) + "\n")

    main = runpy.run_path(str(root / "analysis/response_phrases.py"))["main"]
    main(index, ("Answer:", "Reference"))

    lines = capsys.readouterr().out.splitlines()
    table = [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines]
    assert table[0] == ["model", "method", "responses", "reach the cap", "Answer:", "Reference"]
    assert table[2:] == [
        ["m", "pi_0", "2", "0.0 %", "100.0 %", "0.0 %"],
        ["m", "geosd", "4", "75.0 %", "50.0 %", "25.0 %"],
    ]

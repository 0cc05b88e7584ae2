"""The problems that the repository ships for study smollm2_rates are those of their program."""

import json
import runpy


def test_the_files_are_what_the_program_writes_and_each_cipher_gives_its_word(root, tmp_path):
    folder = root / "analysis/copied_answers"
    runpy.run_path(str(folder / "make_problems.py"))["main"](tmp_path)
    written = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert written == {path.name: path.read_bytes() for path in folder.glob("*.jsonl")}
    rows = [json.loads(line) for line in written["train.jsonl"].splitlines()]
    ciphers = [row for row in rows if "alphabet" in row["question"]]
    assert len(ciphers) == 135 and len(rows) == 180
    for row in ciphers:
        words = row["question"].split()
        places, moved = int(words[words.index("places") - 1]), words[words.index("reads") + 1][:-1]
        back = "".join(chr((ord(letter) - 97 - places) % 26 + 97) for letter in moved)
        assert row["answer"] == back and row["solution"] == f"Answer: {back}"

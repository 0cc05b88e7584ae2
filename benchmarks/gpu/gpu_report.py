"""What the check of a CUDA machine has found, as Markdown, and what of it is out of bounds."""

from collections.abc import Sequence
from typing import Any

from synthetic_update import METHODS

LARGEST = {"loss": 0.05, "gradient": 0.1, "update": 0.1}
"""Relative error of bf16 that passes; bf16 has 8 bits, and errors add up over blocks."""
LARGEST_OF_DEVICE = {"loss": 1e-3, "gradient": 1e-2, "update": 2e-2}
"""Relative error that passes of CUDA against the CPU, both in fp32, and of shards against none."""
LIGER = {"ms": 129.0, "gb": 2.0}
"""Liger Kernel's FusedLinearKLDiv at `LIGER_SHAPE`, by its authors, on an A100."""
LARGEST_GAP = 0.25
"""Nats between vLLM's and transformers' log p of a token, both in bf16, that passes."""


def described(found: dict[str, Any]) -> tuple[int, str]:
    """How many of the GPU check's measurements are out of bounds, and all of them as Markdown."""
    lines = [f"# {found['device']}", "", f"`make gpu-check`, torch {found['torch']}.", ""]
    if found.get("dry"):
        lines += [
            "Dry: every part on the CPU, on a tiny shape. No time or memory means anything.",
            "",
        ]
    elif "updates" not in found and not found.get("left_out"):
        lines += ["There is no CUDA device here: numerics only, on the CPU, on a tiny shape.", ""]
    failed = 0
    for comparison, errors in found["numerics"].items():
        wrong, table = described_numerics(comparison, errors)
        failed, lines = failed + wrong, [*lines, *table]
    if "weight_sync" in found:
        wrong, words = described_sync(found["weight_sync"])
        failed, lines = failed + wrong, [*lines, words, ""]
    elif "updates" in found:
        lines += ["vLLM is not installed here: whether it takes new weights was not checked.", ""]
    lines += described_parts(found)
    for update in found.get("updates", ()):
        lines += described_cost(update)
    for name, why in found.get("left_out", {}).items():
        lines += [f"Left out: {name}, {why}.", ""]
    if "carried" in found:
        files, mib = found["carried"]["files"], found["carried"]["mib"]
        lines += [
            f"It took {found['minutes']:.1f} minutes, and {files} files of {mib:.1f} MiB.",
            "",
        ]
    return failed, "\n".join(lines).rstrip()


def described_numerics(
    comparison: str, errors: dict[str, dict[str, float]]
) -> tuple[int, list[str]]:
    """How many errors of a comparison are out of bounds, and the table of all."""
    largest = LARGEST if "bf16" in comparison else LARGEST_OF_DEVICE
    failed = sum(
        not error <= largest[kind] for each in errors.values() for kind, error in each.items()
    )
    rows = [
        [method, *(f"{each[kind]:.1e}" if kind in each else "–" for kind in largest)]
        for method, each in errors.items()
    ]
    limits = ", ".join(f"{kind} {limit}" for kind, limit in largest.items())
    verdict = f"**{failed} out of bounds**" if failed else "all within bounds"
    note = "Relative errors (Euclidean norm over all parameters) of one update on random weights"
    columns = [comparison, "loss", "gradient", "update after K-FAC"]
    return failed, [*markdown(columns, rows), f"{note}; allowed: {limits}: {verdict}.", ""]


def described_parts(found: dict[str, Any]) -> list[str]:
    """What the check has measured of single parts."""
    lines: list[str] = []
    if "one_card" in found:
        steps = found["one_card"]
        names = list(steps[0]["parts"])
        rows = [
            [step["method"], f"{step['s']:.2f}", *(f"{step['parts'][n]:.2f}" for n in names)]
            + [f"{step['gb']:.1f}", f"{step['tokens_per_s']:,.0f}"]
            for step in steps
        ]
        columns = ["Method", "Step, s", *names, "Peak memory, GB", "Response tokens/s"]
        lines += [f"One update of {steps[0]['model']}, whole on one card, without generation.", ""]
        lines += markdown(columns, rows)
    if "sampler" in found:
        of = found["sampler"]
        lines += [
            f"transformers' sampler: {of['tokens_per_s']:,.0f} tokens/s of {of['model']} on"
            f" {of['device']}, {of['rows']} responses of {of['tokens']} tokens.",
            "",
        ]
    if "loss" in found:
        of = found["loss"]
        lines += [
            f"FwdKL on the union of top-K supports and its gradients, BT {of['positions']:,},"
            f" H {of['hidden']:,}, V {of['vocabulary']:,}: {of['ms']:.0f} ms, {of['gb']:.1f} GB."
            f" Liger Kernel's FusedLinearKLDiv, over all tokens, takes {LIGER['ms']:.0f} ms and"
            f" {LIGER['gb']:.1f} GB on an A100 at 8,192, 4,096 and 128,256.",
            "",
        ]
    if "inverses" in found:
        of = found["inverses"]
        lines += [
            f"Inverses of {of['blocks']:,} blocks of size {of['size']}: {of['ms']:.1f} ms together,"
            f" {of['one_by_one_ms']:.1f} ms one by one.",
            "",
        ]
    return lines


def described_sync(sync: dict[str, float]) -> tuple[int, str]:
    """Whether vLLM samples from the weights that it got, as a number of failures, and in words.

    Before they came, its log-probabilities must have been the old model's, so far from the new
    one's; else the check could not fail.
    """
    holds = sync["gap_after"] <= LARGEST_GAP < sync["gap_before"]
    text = (
        f"vLLM {sync['version']}: new weights of {sync['parameters'] / 1e9:.2f}e9 parameters in"
        f" {sync['s']:.1f} s, through {sync['way']}. Greatest distance of its log p from"
        f" transformers', of {sync['tokens']} sampled tokens: {sync['gap_before']:.2f} nats before,"
        f" {sync['gap_after']:.3f}"
        f" after; allowed {LARGEST_GAP} after, and not before: {'ok' if holds else '**wrong**'}."
    )
    return not holds, text


def described_cost(update: dict[str, Any]) -> list[str]:
    """One model's updates against the paper's memory and cost."""
    blocks, of = update["measured_blocks"], update["blocks"]
    if not blocks:
        gigabytes = update["device_gb"]
        return [f"Not one block of {update['model']} fits this device's {gigabytes:.0f} GB.", ""]
    what = update["model"]
    if blocks < of:
        what = f"{blocks} of {of} blocks of {what} (all of them do not fit)"
    methods = update["methods"]
    base, adamw, geosd = (methods[name] for name in METHODS)
    rows = [
        [name, f"{at['s']:.2f}", f"{at['s'] / base['s']:.2f}", f"{at['gb']:.1f}"]
        + [f"{at['gb'] / base['gb']:.2f}" if base["gb"] else "–"]
        for name, at in methods.items()
    ]
    columns = ["Method", "Time, s", "x OPSD", "Peak memory, GB", "x OPSD"]
    return [
        f"One update of {what}: {update['responses']} responses of up to {update['tokens']} tokens,"
        " one at a time, activations recomputed, without generation. K-FAC is"
        f" {1 - adamw['s'] / geosd['s']:.0%} of GeoSD's time. GeoSD has"
        f" x {update['operations']:.2f} of the operations. The paper has x 1.10 of the whole step's"
        " time, x 1.21 of the memory (131 and 158 GB at 8B) and x 1.27 operations.",
        "",
        *markdown(columns, rows),
    ]


def markdown(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Lines of a table, numbers to the right, and an empty line."""
    align = ["---", *["---:"] * (len(columns) - 1)]
    return [f"| {' | '.join(cells)} |" for cells in (columns, align, *rows)] + [""]

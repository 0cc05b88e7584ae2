"""The paper's tables of costs: transcribed as printed, and recomputed apart from geosd.optim."""

from __future__ import annotations

import numpy as np
import pytest

from geosd.claims.published import published
from geosd.costs.memory_and_disk import GB, memory_of_logits, rounded_memory, total_training_memory
from geosd.costs.update_operations import (
    UpdateOperationsSize,
    forward_units,
    kfac_units,
    tokens_for_update_operations,
    units_by_rule,
    units_counted,
)
from geosd.models.architectures import architecture

LADDER = published()["kfac_memory"]["rows"]
M8B = architecture("qwen3-8b")
CAP = UpdateOperationsSize(8, 4096)


def row(model, **options):
    return total_training_memory(
        architecture(model), LADDER[model]["blocks"], LADDER[model]["storage"], **options
    )


# --- the transcription --------------------------------------------------------------------------


def test_every_number_of_the_architecture_table_is_the_papers(table):
    rows = dict(table("tab:archs"))
    transcribed = published()["archs"]["models"]
    assert len(transcribed) == len(rows) == 7
    for name, cells in transcribed.items():
        layers, hidden, ffn, heads, head, vocabulary = rows[architecture(name).label]
        assert [cells["layers"], cells["hidden"], cells["ffn"]] == layers + hidden + ffn
        assert [cells["heads"], cells["kv_heads"]] == heads
        assert [cells["head"]] == head
        thousands, ones = vocabulary  # printed as 151{,}936
        assert cells["vocabulary"] == 1000 * thousands + ones


@pytest.mark.parametrize("name", ["flops", "memory_methods"])
def test_every_number_of_the_tables_at_8b_is_the_papers(table, name):
    printed = [cells for _, cells in table(f"tab:{name}")][-2:]
    for transcribed, cells in zip(published()[name]["rows"].values(), printed, strict=True):
        assert [[] if v is None else [v] for v in transcribed.values()] == cells


def test_every_number_of_the_ladders_table_is_the_papers(table):
    rows = dict(table("tab:kfac_memory"))
    assert len(LADDER) == len([name for name in rows if name.startswith("Qwen3")]) == 5
    for name, entry in LADDER.items():
        blocks, storage, full, kfac, snapshot, total = rows[architecture(name).label]
        assert ([entry["blocks"]], storage) == (blocks, [])
        assert [entry["full"]] == full and [entry["kfac"]] == kfac
        assert [entry["snapshot"]] == snapshot and [entry["total"], entry["increase"]] == total


def test_blocks_and_types_are_as_the_appendix_says(paper_prose):
    assert "(fp32, g=16, at \\le 8B; bf16, g=32, at 14B/32B)" in paper_prose
    types = {name: (r["blocks"], r["storage"]) for name, r in LADDER.items()}
    large = {"qwen3-14b", "qwen3-32b"}
    assert {n for n, t in types.items() if t == (32, "bfloat16")} == large
    assert {n for n, t in types.items() if t == (16, "float32")} == set(LADDER) - large


# --- memory ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("model", LADDER)
def test_covariances_reproduce_both_printed_columns(model):
    memory, printed = row(model), LADDER[model]
    assert round(memory.full / GB, 1) == printed["full"]
    assert round(memory.kfac / GB, 1) == printed["kfac"]
    assert round(memory.increase) == printed["increase"]


@pytest.mark.parametrize("model", LADDER)
def test_covariances_are_the_papers_formula(model):
    a = architecture(model)
    d, q, kv, f = a.hidden, a.heads * a.head, a.kv_heads * a.head, a.ffn
    budget = a.layers * (7 * d**2 + 2 * q**2 + 2 * kv**2 + 3 * f**2)
    if model not in ("qwen3-4b", "qwen3-32b"):
        assert budget == a.layers * (9 * d**2 + 2 * kv**2 + 3 * f**2)
    each = {"float32": 4, "bfloat16": 2}[LADDER[model]["storage"]]
    assert row(model).full == 4 * budget
    assert row(model).kfac == 2 * each * budget // LADDER[model]["blocks"]


def test_anchor_and_total_differ_from_print_at_1_7b_14b_and_32b_only():
    memory = {m: row(m) for m in LADDER}
    anchor = {m for m in LADDER if round(memory[m].snapshot / GB, 1) != LADDER[m]["snapshot"]}
    total = {m for m in LADDER if round(memory[m].extra / GB, 1) != LADDER[m]["total"]}
    assert anchor == {"qwen3-14b", "qwen3-32b"}
    assert total == {"qwen3-1.7b", "qwen3-32b"}


@pytest.mark.parametrize("model", LADDER)
def test_rounding_the_terms_first_reproduces_every_printed_digit(model):
    snapshot, extra = rounded_memory(row(model))
    assert round(snapshot, 1) == LADDER[model]["snapshot"]
    assert round(extra, 1) == LADDER[model]["total"]


def test_the_table_at_8b_follows_from_sixteen_bytes_a_parameter():
    printed = published()["memory_methods"]["rows"]["geosd"]
    memory = total_training_memory(M8B, 16, "float32")
    assert memory.base == 16 * M8B.parameters
    assert round(memory.base / GB) == printed["base"]
    assert round(memory.kfac / GB, 1) == printed["kfac"]
    assert round(memory.snapshot / GB, 1) == printed["snapshot"]
    assert round(memory.total / GB) == printed["total"]
    assert round(memory.total / memory.base, 2) == printed["ratio"]
    assert round(100 * memory.kfac / memory.base) == 8


def test_sharing_inputs_saves_a_part_of_the_factors_only():
    shared, apart = row("qwen3-8b", share_inputs=True), row("qwen3-8b")
    assert apart.kfac - shared.kfac == 36 * 3 * 4096**2 // 16 * 4 * 2
    assert (shared.base, shared.full, shared.snapshot) == (apart.base, apart.full, apart.snapshot)


def test_truncated_logits_of_the_union_stay_below_a_gigabyte():
    assert memory_of_logits(CAP, 1024) == 8 * 4096 * 1024 * 6
    assert memory_of_logits(CAP, 3 * 1024) < GB


# --- operations -----------------------------------------------------------------------------------


def test_the_rule_of_thumb_gives_the_printed_totals():
    printed = published()["flops"]["rows"]
    opsd, geosd = units_by_rule(CAP), units_by_rule(CAP, printed["geosd"]["kfac"])
    assert (opsd.student, opsd.teacher, opsd.total) == (6, 3, printed["opsd"]["total"])
    assert geosd.anchor == printed["geosd"]["anchor"]
    assert geosd.total == pytest.approx(printed["geosd"]["total"])
    assert round(geosd.total / opsd.total, 2) == printed["geosd"]["ratio"]


def by_hand(model, tokens, blocks, subsample):
    """Operations of K-FAC over model.parameters * tokens, layer by layer."""
    d, q, kv, f = model.hidden, model.queries, model.keys, model.ffn
    sides = np.array([(d, q), (d, kv), (d, kv), (q, d), (d, f), (d, f), (f, d)], dtype=float)
    size, layers = sides / blocks, model.layers
    covariance = layers * (blocks * 2 * size**2).sum() * tokens * subsample
    inverse = layers * (blocks * size**3).sum()
    products = layers * (2 * sides.prod(1) * size.sum(1)).sum()
    return np.array([covariance, inverse, products]) / (model.parameters * tokens)


@pytest.mark.parametrize("model", ["qwen3-1.7b", "qwen3-4b", "qwen3-8b", "qwen3-32b"])
@pytest.mark.parametrize(("blocks", "subsample"), [(16, 1 / 8), (32, 1 / 8), (1, 1.0)])
def test_units_of_kfac_are_those_of_its_layers(model, blocks, subsample):
    shape = architecture(model)
    units = kfac_units(shape, CAP, blocks, subsample)
    expected = by_hand(shape, CAP.total, blocks, subsample)
    assert [units.covariance, units.inverse, units.precondition] == pytest.approx(list(expected))
    assert units.total == pytest.approx(expected.sum())


def test_blocks_cut_covariances_by_g_and_inverses_by_g_squared():
    dense, blocked = kfac_units(M8B, CAP, 1), kfac_units(M8B, CAP, 16)
    assert dense.covariance / blocked.covariance == pytest.approx(16)
    assert dense.inverse / blocked.inverse == pytest.approx(256)


def test_the_papers_0_4_does_not_follow_from_its_own_settings():
    stated = kfac_units(M8B, CAP, 16, 1 / 8)
    assert round(stated.covariance, 2) == 0.04
    assert round(stated.total, 1) == 0.1
    every_token = kfac_units(M8B, CAP, 16, 1.0)
    assert round(every_token.total, 1) == published()["flops"]["rows"]["geosd"]["kfac"]


def test_short_responses_would_give_the_papers_0_4_too():
    tokens = tokens_for_update_operations(M8B, CAP, 0.4, 16, 1 / 8)
    assert kfac_units(
        M8B, UpdateOperationsSize(8, round(tokens)), 16, 1 / 8
    ).total == pytest.approx(0.4, rel=1e-3)
    assert tokens < 4096 / 4


def test_a_forward_pass_is_two_units_because_attention_makes_up_for_the_embedding():
    # At 8B the embedding holds 7.6% of the parameters; attention at the cap takes 7.4% of a pass.
    assert forward_units(M8B, 4096) == pytest.approx(2.0, abs=0.01)
    embedding = M8B.vocabulary * M8B.hidden / M8B.parameters
    norms = M8B.norms / M8B.parameters
    assert forward_units(M8B, 0) == pytest.approx(2 * (1 - embedding - norms))


def test_counting_operations_keeps_the_order_of_magnitude_of_the_rule():
    opsd = units_counted(M8B, CAP)
    assert opsd.total == pytest.approx(units_by_rule(CAP).total, rel=0.02)
    assert units_counted(M8B, CAP, 0.5).total == pytest.approx(opsd.total + opsd.student / 3 + 0.5)

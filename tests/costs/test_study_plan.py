"""A plan: memory and hours against arithmetic by hand and against what the paper prints."""

from __future__ import annotations

from dataclasses import replace

import pytest

from geosd.claims.published import published
from geosd.costs.assumptions import DEFAULTS, Assumptions
from geosd.costs.gpu_memory import inference_gpu_memory, training_gpu_memory
from geosd.costs.hours import (
    decoding_seconds,
    hours_rows,
    job_hours,
    likely_hours,
    step_seconds,
    update_hours_units,
    weight_sync_hours,
)
from geosd.costs.memory_and_disk import memory_of_kv_token
from geosd.costs.update_operations import UpdateOperationsSize
from geosd.costs.workload import (
    KfacWorkload,
    ModelWorkload,
    SamplingWorkload,
    StoredWeightsWorkload,
    TrainingWorkload,
    WorkloadGpus,
)
from geosd.models.architectures import architecture
from geosd.reporting.plan_tables import plan_sync_words

M8B = architecture("qwen3-8b")
N = 8_190_735_360  # counted from the released weights
OPSD = TrainingWorkload(
    625, UpdateOperationsSize(8, 4096), 4096, True, {"teacher"}, None, True, 1024, 1
)
GEOSD = replace(OPSD, needs={"teacher", "anchor"}, kfac=KfacWorkload(16, 1 / 8, "float32"))
THREE = WorkloadGpus(3, 1)  # two train, one generates


def part(parts, name):
    (found,) = [entry.bytes for entry in parts if entry.name == name]
    return found


# --- memory ---------------------------------------------------------------------------------------


def test_sixteen_bytes_a_parameter_are_shared_out_among_the_training_gpus():
    for n in (1, 2, 6):
        parts = training_gpu_memory(M8B, GEOSD, WorkloadGpus(n + 1, 1), DEFAULTS)
        names = ("master weights", "gradients", "first moments", "second moments")
        assert sum(part(parts, name) for name in names) == pytest.approx(16 * N / n)


def test_muon_keeps_no_second_moments_of_the_projections():
    layer = 4096 * (4096 + 2 * 1024) + 4096 * 4096 + 3 * 4096 * 12288
    two_gpus = training_gpu_memory(M8B, replace(OPSD, muon=True), THREE, DEFAULTS)
    plain = training_gpu_memory(M8B, OPSD, THREE, DEFAULTS)
    saved = part(plain, "second moments") - part(two_gpus, "second moments")
    assert saved == 4 * 36 * layer / 2
    # bf16 iterates and fp32 copies of one matrix of 4096 x 12288, and two bf16 products 4096 x 4096
    assert part(two_gpus, "Muon's step of one matrix") == 12 * 4096 * 12288 + 4 * 4096**2


def test_muon_costs_five_newton_schulz_iterations_of_every_projection():
    d, kv, ffn = 4096, 1024, 12288

    def iteration(m, n):
        return 2 * m * m * n + 2 * m**3 + 2 * m * m * n

    layer = 2 * iteration(d, d) + 2 * iteration(kv, d) + 3 * iteration(d, ffn)
    units = update_hours_units(M8B, replace(OPSD, muon=True))
    assert units.muon == pytest.approx(36 * 5 * layer / (N * 8 * 4096))
    assert units.total == pytest.approx(update_hours_units(M8B, OPSD).total + units.muon)


def test_a_purified_teacher_is_two_passes_and_two_models_logits_more():
    purified = replace(OPSD, purified=True)
    more = update_hours_units(M8B, purified).total - update_hours_units(M8B, OPSD).total
    assert more == pytest.approx(2 * (1 + 1.5))  # pi_0's prompt, and one as long as the teacher's
    plain, with_two = (
        part(training_gpu_memory(M8B, each, THREE, DEFAULTS), "logits") for each in (OPSD, purified)
    )
    assert with_two - plain == 2 * 1024 * 151936 * 4


def test_the_whole_vocabulary_keeps_a_chunk_of_log_probabilities():
    whole = replace(OPSD, whole_vocabulary=True)
    plain, more = (
        part(training_gpu_memory(M8B, each, THREE, DEFAULTS), "logits") for each in (OPSD, whole)
    )
    assert more - plain == 3 * 1024 * 151936 * 4  # student, teacher, and a gradient


def test_the_inference_gpu_holds_weights_anchor_and_the_caches_of_eight_responses():
    parts = inference_gpu_memory(M8B, GEOSD, THREE, replace(DEFAULTS, prompt=100))
    assert part(parts, "weights that sample") == part(parts, "anchor") == 2 * N
    assert sum(p.bytes for p in parts) - part(parts, "KV cache") == 4 * 2 * N
    # 36 layers, 8 heads of 128 for keys and as many for values, 2 bytes each
    assert part(parts, "KV cache") == 8 * 4196 * 36 * 2 * 8 * 128 * 2
    assert "anchor" not in {
        p.name
        for p in inference_gpu_memory(M8B, replace(GEOSD, needs={"teacher"}), THREE, DEFAULTS)
    }


def test_logits_and_block_inputs_follow_from_their_sizes():
    parts = training_gpu_memory(M8B, GEOSD, THREE, replace(DEFAULTS, prompt=100))
    assert part(parts, "logits") == 1024 * 151_936 * (3 * 4 + 4 + 2)
    assert part(parts, "inputs of the blocks") == 36 * 4196 * 4096 * 2
    whole = training_gpu_memory(
        M8B, replace(GEOSD, recompute=False), THREE, replace(DEFAULTS, prompt=100)
    )
    assert part(whole, "activations") == 36 * part(parts, "activations of one block")
    two = training_gpu_memory(
        M8B, replace(GEOSD, microbatch=2), THREE, replace(DEFAULTS, prompt=100)
    )
    assert part(two, "inputs of the blocks") == 2 * part(parts, "inputs of the blocks")


def test_without_inference_gpus_the_training_gpus_hold_both():
    together = training_gpu_memory(M8B, GEOSD, WorkloadGpus(2), DEFAULTS)
    apart = training_gpu_memory(M8B, GEOSD, THREE, DEFAULTS)
    extra = sum(p.bytes for p in together) - sum(p.bytes for p in apart)
    assert extra == sum(
        p.bytes for p in inference_gpu_memory(M8B, GEOSD, WorkloadGpus(2), DEFAULTS)
    )


def test_8b_with_its_state_of_131_gb_fits_on_two_gpus_and_not_on_one():
    for trainers, fits in ((1, False), (2, True)):
        parts = training_gpu_memory(M8B, GEOSD, WorkloadGpus(trainers + 1, 1), DEFAULTS)
        assert (sum(p.bytes for p in parts) <= DEFAULTS.usable_bytes) == fits


def test_weights_that_leave_no_room_are_refused_with_a_hint():
    with pytest.raises(ValueError, match="no room for a response.*\nHint:"):
        decoding_seconds(
            architecture("qwen3-32b"),
            SamplingWorkload(8, 4096),
            1,
            replace(DEFAULTS, usable=0.4),
        )


# --- hours ----------------------------------------------------------------------------------------


def decoded_at_bandwidth(sequences, concurrent, tokens, a):
    """Seconds by hand: each token of the concurrent responses reads weights and their caches."""
    moved = 2 * N + concurrent * (a.prompt + tokens / 2) * memory_of_kv_token(M8B)
    return sequences / concurrent * tokens * moved / (0.7 * 4.8e12)


def test_decoding_one_response_reads_all_weights_once_a_token():
    a = Assumptions(prompt=100)
    seconds = decoding_seconds(M8B, SamplingWorkload(1, 4096), 1, a)
    assert seconds == pytest.approx(decoded_at_bandwidth(1, 1, 4096, a))


def test_many_responses_are_decoded_side_by_side_as_far_as_their_caches_fit():
    a, many = Assumptions(prompt=100, concurrent=10_000), SamplingWorkload(10_000, 4096)
    fit = int((0.9 * 143_771 * 2**20 - 2 * N) // ((100 + 2048) * memory_of_kv_token(M8B)))
    as_fit = decoding_seconds(M8B, many, 1, a)
    assert as_fit == pytest.approx(decoded_at_bandwidth(10_000, fit, 4096, a))
    eight = decoding_seconds(M8B, many, 1, replace(a, concurrent=8))
    assert eight == pytest.approx(decoded_at_bandwidth(10_000, 8, 4096, a))
    assert eight > as_fit


def test_short_contexts_of_many_responses_wait_for_operations():
    a = Assumptions(prompt=1, concurrent=100_000, mfu=0.01)
    seconds = decoding_seconds(M8B, SamplingWorkload(100_000, 16), 1, a)
    tables = 151_936 * 4096
    matrices = 2 * (N - 2 * tables) + 2 * tables  # the embedding is looked up; norms are nothing
    attention = 4 * 36 * 4096 * (1 + 8)
    expected = 100_000 * 16 * (matrices + attention) / (0.01 * 989e12)
    assert seconds == pytest.approx(expected, rel=1e-3)
    assert seconds > decoded_at_bandwidth(100_000, 100_000, 16, a)


def test_units_of_an_update_are_the_papers():
    printed = published()["flops"]["rows"]
    assert update_hours_units(M8B, OPSD).total == printed["opsd"]["total"]
    geosd = update_hours_units(M8B, GEOSD)
    assert geosd.total - geosd.kfac == printed["geosd"]["total"] - printed["geosd"]["kfac"]
    sft = replace(OPSD, generates=False, needs=frozenset())
    assert update_hours_units(M8B, sft).total == printed["opsd"]["student"]


def test_an_update_takes_its_operations_at_the_share_that_is_granted():
    _, update = step_seconds(M8B, OPSD, THREE, DEFAULTS)
    tokens = 8 * 4096
    assert update == pytest.approx((6 + 2 + 3) * N * tokens / (2 * 0.4 * 989e12))
    _, kept = step_seconds(M8B, replace(OPSD, recompute=False), THREE, DEFAULTS)
    assert kept / update == pytest.approx(9 / 11)


def test_the_anchors_pass_costs_time_only_where_no_other_gpu_does_it():
    _, apart = step_seconds(M8B, replace(GEOSD, kfac=None), THREE, DEFAULTS)
    _, together = step_seconds(M8B, replace(GEOSD, kfac=None), WorkloadGpus(2), DEFAULTS)
    assert together / apart == pytest.approx((8 + 3 + 2) / (8 + 3))


def test_training_on_pool_solutions_generates_nothing():
    assert step_seconds(M8B, replace(OPSD, generates=False), THREE, DEFAULTS)[0] == 0


def test_a_question_is_read_once_and_every_call_waits_for_its_last_response():
    a, workload = Assumptions(prompt=100), SamplingWorkload(64, 4096)
    seconds = decoding_seconds(M8B, workload, 1, a)
    read = decoding_seconds(M8B, workload._replace(prompts=4), 1, a) - seconds
    assert read == pytest.approx(4 * 100 * 2 * N / (0.4 * 989e12))
    waited = decoding_seconds(M8B, workload._replace(calls=9), 1, a) - seconds
    assert waited == pytest.approx(9 * 4096 * 2 * N / (0.7 * 4.8e12))


# --- a study --------------------------------------------------------------------------------------

NINE = {
    "sft": replace(OPSD, generates=False, needs=frozenset()),
    "grpo": replace(OPSD, needs={"reference"}),
    **dict.fromkeys(("fwdkl", "revkl", "jsd", "skewkl", "tropd", "tip"), OPSD),
    "geosd": GEOSD,
}
SWEEP = ModelWorkload(
    model="qwen3-8b",
    jobs={"pool": 1, "train": 9, "evaluate": 9},
    gpu_requests={
        "pool": WorkloadGpus(1),
        "train": WorkloadGpus(3, 1),
        "evaluate": WorkloadGpus(1),
    },
    pool=SamplingWorkload(32 * 1000, 4096),
    evaluation=SamplingWorkload(16 * 1100, 8192),
    trainings=NINE,
    stored=StoredWeightsWorkload(2, 9, 1),
)


def test_hours_of_trainings_are_the_mean_over_the_methods():
    each = [
        training.steps * sum(step_seconds(M8B, training, THREE, DEFAULTS)) / 3600
        for training in NINE.values()
    ]
    assert job_hours(SWEEP, "train", DEFAULTS) == pytest.approx(sum(each) / 9)


def test_rules_without_a_gpu_are_counted_and_nothing_is_reckoned():
    work = replace(SWEEP, jobs={"base": 1}, gpu_requests={"base": WorkloadGpus(0)})
    (line,) = hours_rows(work, work.jobs, {"base": [0.5]}, DEFAULTS)
    assert (line.jobs, line.reckoned, line.measured, line.off) == (1, None, 0.5, None)


def test_what_jobs_took_stands_for_those_to_come_of_the_model_and_corrects_the_other_models():
    other = replace(SWEEP, model="ds-r1-llama-8b")
    reckoned = job_hours(SWEEP, "evaluate", DEFAULTS)
    took = [2 * reckoned, 4 * reckoned]
    rows = hours_rows(SWEEP, SWEEP.jobs, {"evaluate": took}, DEFAULTS)
    rows += hours_rows(other, other.jobs, {}, DEFAULTS)
    likely = dict(zip([(row.model, row.rule) for row in rows], likely_hours(rows), strict=True))
    measured_row = next(row for row in rows if row.rule == "evaluate")
    assert (measured_row.done, measured_row.off) == (2, pytest.approx(3))
    assert likely["qwen3-8b", "evaluate"] == pytest.approx(3 * reckoned)
    elsewhere = job_hours(other, "evaluate", DEFAULTS)
    assert likely["ds-r1-llama-8b", "evaluate"] == pytest.approx(3 * elsewhere)
    assert likely["ds-r1-llama-8b", "train"] == job_hours(other, "train", DEFAULTS)


@pytest.mark.parametrize("wrong", [{"mfu": 40}, {"usable": 0.0}, {"prompt": 0}])
def test_a_share_that_is_none_is_refused(wrong):
    with pytest.raises(ValueError, match=f"{next(iter(wrong))} is .*\nHint:"):
        Assumptions(**wrong)


def test_a_sync_moves_two_bytes_a_parameter_over_the_link_and_six_times_over_the_card():
    nbytes = 2 * M8B.parameters
    assert nbytes == pytest.approx(16.4e9, rel=0.01)
    card = 6 * nbytes / (0.7 * 4.8e12)
    assert weight_sync_hours(M8B, THREE, DEFAULTS) == pytest.approx((nbytes, nbytes / 50e9 + card))
    assert weight_sync_hours(M8B, WorkloadGpus(1), DEFAULTS) == pytest.approx((nbytes, card))
    said = plan_sync_words({"qwen3-8b": weight_sync_hours(M8B, THREE, DEFAULTS)})
    assert said.replace("\n", " ").endswith("of a training: qwen3-8b 16.4 GB, .4 s.")
    assert plan_sync_words({}) == ""

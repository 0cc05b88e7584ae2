"""The sampler that needs nothing but transformers: the laptop's, and everyone's fallback."""

import logging
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
import transformers
from torch import Tensor, nn
from tqdm import tqdm

from geosd.models.context_length import check_context
from geosd.models.forward import evaluation_mode
from geosd.models.output_head import float32_head_logits
from geosd.sampling.broken_logits import NonFiniteLogitsError
from geosd.sampling.decoding.compiled_step import CompiledStep, open_compiled_step
from geosd.sampling.decoding.decode_session import (
    ModelCacheSession,
    PreallocatedSession,
    takes_preallocated_session,
)
from geosd.sampling.decoding.decode_step import DecodeStep, EagerStep
from geosd.sampling.decoding.packed_step import PackedStep, can_pack_step
from geosd.sampling.paused_part import PartLeftError, PausedPart, never_paused
from geosd.sampling.sampler import Completion, OnFinish, Sampler, SamplerPrompts, SamplingParams
from geosd.sampling.token_draws import NO_TOKEN, draw_tokens, request_uniforms

CPU_STRIDE = 1  # tokens between two looks for rows that have ended
ACCELERATOR_STRIDE = 8  # each look waits for the device
WORTHWHILE = 0.75  # a batch is copied without its ended rows when at most this share goes on

DecodeSession = PreallocatedSession | ModelCacheSession

logger = logging.getLogger(__name__)


@dataclass
class _Part:
    """The responses of a batch under way, T tokens of each of its B rows.

    Attributes:
        rows: The place in the call of each row that is still computed.
        known: Rows among them that have ended.
        done: The responses that have ended, by place.
        tokens_TB: Of the rows, as drawn.
    """

    session: DecodeSession
    rows: list[int]
    ended_B: Tensor
    known: int
    done: dict[int, Completion]
    tokens_TB: Tensor


class TransformersSampler(Sampler):
    """Samples from a live transformers model, so weights never need to be moved to it.

    B = rows of one batch, R = most tokens of a response.

    Args:
        model: A causal language model; its current weights are what is sampled.
        end_ids: Tokens that end a response.
        pad_id: Fills the left of short prompts; never seen by the model behind the mask.
        rows: Prompts generated together.
        compiled: Whether one step of an fp32 model on a CPU is compiled, once per architecture and
            machine; without a compiler the model's own modules compute it.
        packed: Whether the linear layers of a model on a CPU, not compiled, read weights that are
            packed anew for each batch; see `PackedStep`.
        progress: What the progress bar says; None shows none.
    """

    copies_weights = False
    chunk = 1  # each batch is

    def __init__(
        self,
        model: nn.Module,
        end_ids: Iterable[int],
        pad_id: int,
        rows: int = 256,
        compiled: bool = False,
        packed: bool = False,
        progress: str | None = None,
    ) -> None:
        """Remember what to sample from and how."""
        self.model, self.rows, self.progress = model, rows, progress
        self.compiled, self.packed = compiled, packed
        self.end_ids, self.pad_id = sorted(set(end_ids)), pad_id
        self.on_finish: OnFinish | None = None
        self.stop_requested: Callable[[], bool] = never_paused
        self.paused: PausedPart | None = None
        self._step_record: dict[str, Any] = {"kind": "none yet"}

    def sample_chunks(
        self,
        batches: Sequence[SamplerPrompts],
        sampling: SamplingParams,
        finished: Collection[int] = (),
    ) -> Iterator[dict[int, Completion]]:
        """See `Sampler.sample_chunks`.

        A chunk is `rows` prompts of like length of one batch. Which ones does not depend on what
        has finished, nor on other batches: each has the same rounding alone and among others.

        Raises:
            ContextError: A prompt and its response may be longer than the model's context.
            NonFiniteLogitsError: A row of logits is not finite; see `draw_tokens`.
            PartLeftError: `stop_requested`; a chunk is left in the middle, and kept in `paused`.
        """
        context = getattr(self.model.config, "max_position_embeddings", None)
        longest = max((len(prompt) for batch in batches for prompt in batch.prompts), default=0)
        check_context(context, longest, sampling.max_new_tokens)
        chunks, first = [], 0
        for batch in batches:
            order = sorted(range(len(batch.prompts)), key=lambda i: len(batch.prompts[i]))
            starts = range(0, len(order), self.rows)
            chunks += [(batch, first, order[start : start + self.rows]) for start in starts]
            first += len(order)
        left = [c for c in chunks if not all(c[1] + place in finished for place in c[2])]
        options = {"initial": len(chunks) - len(left), "total": len(chunks), "mininterval": 2}
        bar = tqdm(left, desc=self.progress, disable=self.progress is None, **options)
        for batch, first, places in bar:
            try:
                done = self._sample_together(batch, places, sampling)
            except NonFiniteLogitsError as error:
                raise NonFiniteLogitsError(first + error.place, error.position) from error
            yield {first + place: completion for place, completion in done.items()}

    @torch.inference_mode()
    def _sample_together(
        self, batch: SamplerPrompts, places: list[int], sampling: SamplingParams
    ) -> dict[int, Completion]:
        """Completions of the prompts at some places of a batch, by their places."""
        with evaluation_mode(self.model), float32_head_logits(self.model):
            part = self._resumed(batch, places, sampling)
            if part is None:
                prompts = [batch.prompts[i] for i in places]
                part = self._begun(self._open(prompts, sampling.max_new_tokens), places)
            return self._complete(part, places, sampling, batch)

    def record(self) -> dict[str, Any]:
        """Engine, version, rows, how a step is computed, and how requests are seeded."""
        return {
            "engine": "transformers",
            "version": transformers.__version__,
            "rows": self.rows,
            "step": self._step_record,  # of the latest batch
            "request_seeds": 'seed_of(seed of the call, "request", place in the call)',
        }

    @cached_property
    def _step(self) -> DecodeStep | None:
        """The decode step; None is the model with its own cache and attention."""
        if not takes_preallocated_session(self.model):
            return None
        if self.compiled:
            try:
                return open_compiled_step(self.model)
            except (RuntimeError, OSError) as error:
                logger.warning("sampling without a compiled step: %s", error)
        return EagerStep(self.model)

    def _open(self, prompts: list[Sequence[int]], new_tokens: int) -> DecodeSession:
        step = self._step_of_batch(len(prompts))
        if step is None:
            return ModelCacheSession(self.model, prompts, self.pad_id)
        return PreallocatedSession(self.model, step, prompts, self.pad_id, new_tokens)

    def _step_of_batch(self, rows: int) -> DecodeStep | None:
        """The decode step of a batch of so many prompts; notes it for the record."""
        step = self._step
        # Autocast, and weights of another type or on another device, are not in the program.
        if isinstance(step, CompiledStep) and (
            torch.is_autocast_enabled("cpu") or not step.read_weights()
        ):
            step = EagerStep(self.model)
        if isinstance(step, EagerStep) and self.packed and can_pack_step(self.model):
            step = PackedStep(self.model, rows)
        self._step_record = {"kind": "by the model's own cache"} if step is None else step.record
        return step

    def _begun(self, session: DecodeSession, places: list[int]) -> _Part:
        """The responses of a batch before their first token."""
        device = session.logits.device
        ended_B = torch.zeros(len(places), dtype=torch.bool, device=device)
        tokens_TB = torch.empty(0, len(places), dtype=torch.long, device=device)
        return _Part(session, list(places), ended_B, 0, {}, tokens_TB)

    def _key(self, batch: SamplerPrompts, places: list[int], sampling: SamplingParams) -> Any:
        """A part's name: all that decides its bytes, besides the weights and the job."""
        prompts = [list(batch.prompts[i]) for i in places]
        return [batch.seed, places, prompts, vars(sampling), self._step_record]

    def _resumed(
        self, batch: SamplerPrompts, places: list[int], sampling: SamplingParams
    ) -> _Part | None:
        """The part that a job left in the middle, if it is this one."""
        if self.paused is None or not self.paused.head.exists():
            return None
        step = self._step_of_batch(len(places))
        found = self.paused.load(self._key(batch, places, sampling))
        if step is None or found is None:
            return None
        values, tensors = found
        ended_B, tokens_TB = tensors.pop("ended"), tensors.pop("tokens")
        session = PreallocatedSession.resumed(step, values["session"], tensors)
        done = {place: Completion(tuple(ids), finish) for place, ids, finish in values["done"]}
        return _Part(session, values["rows"], ended_B, values["known"], done, tokens_TB)

    def _leave(self, part: _Part, key: Any) -> None:
        """Keep a part, where its session can be kept, and stop."""
        session, kept = part.session, self.paused
        on_cpu = session.logits.device.type == "cpu"
        if kept is not None and on_cpu and isinstance(session, PreallocatedSession):
            values, tensors = session.state()
            done = [[place, each.ids, each.finish] for place, each in part.done.items()]
            own = {"session": values, "rows": part.rows, "known": part.known, "done": done}
            tensors = {**tensors, "ended": part.ended_B, "tokens": part.tokens_TB}
            kept.save(key, own, {n: each.contiguous() for n, each in tensors.items()})
        raise PartLeftError

    def _complete(
        self, part: _Part, places: list[int], sampling: SamplingParams, batch: SamplerPrompts
    ) -> dict[int, Completion]:
        """Completions of a batch by the prompts' places in the call."""
        session, rows, known, done = part.session, part.rows, part.known, part.done
        ended_B = part.ended_B
        device = session.logits.device
        stride = CPU_STRIDE if device.type == "cpu" else ACCELERATOR_STRIDE
        ends_V = torch.zeros(session.logits.shape[1] + 1, dtype=torch.bool, device=device)
        ends_V[[*self.end_ids, NO_TOKEN]] = True  # which is the last one: broken logits end a row
        cap = sampling.max_new_tokens
        uniforms_RB = request_uniforms(batch.seed, rows, cap).to(device)
        tokens_RB = torch.empty(cap, len(rows), dtype=torch.long, device=device)
        begun = len(part.tokens_TB)
        tokens_RB[:begun] = part.tokens_TB
        for token in range(begun, cap):
            if self.stop_requested():
                left = _Part(session, rows, ended_B, known, done, tokens_RB[:token])
                self._leave(left, self._key(batch, places, sampling))
            ids_B = draw_tokens(session.logits, uniforms_RB[token], sampling)
            tokens_RB[token] = ids_B
            ended_B |= ends_V[ids_B]
            if token + 1 == cap:
                break
            if (token + 1) % stride == 0 and int(ended_B.sum()) > known:
                self._collect(rows, ended_B, tokens_RB[: token + 1], done)
                going_on = (~ended_B).nonzero()[:, 0]
                if len(going_on) == 0:
                    return done
                known = len(rows) - len(going_on)
                if len(going_on) <= WORTHWHILE * len(rows):
                    known = 0
                    session.keep(going_on)
                    ids_B, ended_B = ids_B[going_on], ended_B[going_on]
                    tokens_RB, uniforms_RB = tokens_RB[:, going_on], uniforms_RB[:, going_on]
                    rows = [rows[row] for row in going_on.tolist()]
            session.step(ids_B.clamp(min=0))
        self._collect(rows, ended_B, tokens_RB, done)
        for place, ids in zip(rows, tokens_RB.T.tolist(), strict=True):
            done.setdefault(place, Completion(tuple(ids), "length"))
        return done

    def _collect(
        self, rows: list[int], ended_B: Tensor, tokens_TB: Tensor, done: dict[int, Completion]
    ) -> None:
        """Put responses that have ended among `done`, and report those that were not there.

        Raises:
            NonFiniteLogitsError: Broken logits have ended one.
        """
        for row in ended_B.nonzero()[:, 0].tolist():
            place = rows[row]
            if place not in done:
                ids = tokens_TB[:, row].tolist()
                ends = (*self.end_ids, NO_TOKEN)
                length = 1 + next(t for t, token in enumerate(ids) if token in ends)
                if ids[length - 1] == NO_TOKEN:
                    raise NonFiniteLogitsError(place, length)
                done[place] = Completion(tuple(ids[:length]), "stop")
                if self.on_finish is not None:
                    self.on_finish(place, done[place])

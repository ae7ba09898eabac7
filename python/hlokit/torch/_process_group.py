# SPDX-License-Identifier: Apache-2.0
"""The backend `hlokit` of torch.distributed: its ranks are the threads of spawn(), or processes, and its collectives are
recorded in the graphs of their devices. Those of tensors on the host, those that only some ranks do, and what one rank sends to
another pass between the ranks on the host.
"""

import datetime
from typing import Any, Callable, List, Optional, Sequence, Tuple

import torch
import torch.distributed as dist
from torch._C._distributed_c10d import _create_work_from_future
from torch.futures import Future

from . import _processes, _session, _threads, _worlds
from ._tensor import lazy_of, upload, value_of, wrap

_ReduceOp = dist.ReduceOp
_c10d: Any = torch._C._distributed_c10d

# The reductions of the tracer, and of values on the host.
_REDUCTIONS = {
    _ReduceOp.SUM: "sum",
    _ReduceOp.AVG: "sum",
    _ReduceOp.PREMUL_SUM: "sum",
    _ReduceOp.PRODUCT: "mul",
    _ReduceOp.MIN: "min",
    _ReduceOp.MAX: "max",
    _ReduceOp.BAND: "and",
    _ReduceOp.BOR: "or",
}
_ON_HOST = {
    "sum": torch.add,
    "mul": torch.mul,
    "min": torch.minimum,
    "max": torch.maximum,
    "and": torch.bitwise_and,
    "or": torch.bitwise_or,
}


_UNKNOWN = object()


def _seconds(timeout: Any, otherwise: float) -> float:
    """Of a timeout of torch.distributed, for which nothing, zero and less are none of its own."""
    if isinstance(timeout, datetime.timedelta) and timeout > datetime.timedelta(0):
        return timeout.total_seconds()
    return otherwise


def _described(what: str, tensors: Sequence[torch.Tensor]) -> str:
    """What the ranks of a collective have in common."""
    types = [f"{str(t.dtype).rpartition('.')[2]}{list(t.shape)}" for t in tensors]
    return f"{what} of {', '.join(types)}"


def _done(result: Any) -> Any:
    """What torch.distributed waits for; the graph orders what is recorded."""
    future: Any = Future()
    future.set_result(result)
    return _create_work_from_future(future)


def _reduction(options: Any, size: int) -> Tuple[str, float]:
    """The reduction of a call, and the factor of its result."""
    op = getattr(options, "reduceOp", options)
    kind = getattr(op, "op", op)
    name = _REDUCTIONS.get(kind)
    if name is None:
        raise NotImplementedError(f"the backend hlokit has no reduction {kind}")
    if kind == _ReduceOp.AVG:
        return name, 1.0 / size
    factor = getattr(op, "factor", None) if kind == _ReduceOp.PREMUL_SUM else None
    return name, 1.0 if factor is None else float(factor)


def _scaled(value: torch.Tensor, factor: float) -> torch.Tensor:
    """A sum times the factor of its reduction; means of integers are integers."""
    if factor == 1:
        return value
    if value.is_floating_point() or value.is_complex():
        return value * factor
    return torch.div(value, round(1 / factor), rounding_mode="trunc") if factor < 1 else value * round(factor)


def _part_of_op(tensor: torch.Tensor, factor: float) -> float:
    """The factor that the collective itself applies."""
    return factor if tensor.is_floating_point() else 1.0


def _put(target: torch.Tensor, value: torch.Tensor) -> None:
    """Writes a result. PyTorch does not know that collectives write, and differentiates none."""
    target.detach().copy_(value.reshape(target.shape))


class _Receive:
    """Values that another rank sends, which are waited for."""

    def __init__(self, member: Any, tensors: List[torch.Tensor], keys: Any, seconds: float):
        self._member, self._tensors, self._keys, self._seconds = member, tensors, keys, seconds
        self._source = -1
        self._completed = False

    @torch.no_grad()
    def wait(self, timeout: Any = None) -> bool:
        if not self._completed:
            for tensor in self._tensors:
                key, value = self._member.run.receive(self._member, self._keys, _seconds(timeout, self._seconds))
                self._source = key[1]
                _put(tensor, value.to(tensor.device))
            self._completed = True
        return True

    synchronize = wait

    def is_completed(self) -> bool:
        return self._completed

    def _source_rank(self) -> int:
        self.wait()
        return self._source


class LazyProcessGroup(dist.ProcessGroup):
    """A group of torch.distributed."""

    def __init__(self, rank: int, size: int, ranks: Sequence[int], name: str, seconds: float):
        super().__init__(rank, size)
        self._rank = rank
        self._size = size
        self._ranks = tuple(ranks)
        self._name = name
        self._seconds = seconds  # that a rank waits for the others
        self._member = _threads.member()
        self._partition: Any = _UNKNOWN

    # ---- what torch.distributed asks ----

    def size(self) -> int:
        return self._size

    def rank(self) -> int:
        return self._rank

    def getGroupName(self) -> str:
        return self._name

    @property
    def pg_name(self) -> str:
        return self._name

    @property
    def group_name(self) -> str:
        return self._name

    def getBackendName(self) -> str:
        return _worlds.BACKEND

    def name(self) -> str:
        return _worlds.BACKEND

    # Operations between two ranks in one batch are done one by one.
    supports_coalescing = False

    def _get_backend(self, device: Any) -> "LazyProcessGroup":
        return self

    def shutdown(self) -> None:
        pass

    def abort(self) -> None:
        pass

    def __repr__(self) -> str:
        return f"<group {self._name} of ranks {list(self._ranks)}, rank {self._rank}>"

    # ---- recording ----

    def _session(self) -> Any:
        return _session.current()

    def _groups(self) -> Optional[List[List[int]]]:
        if self._partition is _UNKNOWN:
            self._partition = _worlds.partition_of(self._ranks, self._session().world_size())
        return self._partition  # type: ignore[no-any-return]

    def _exchange(self, payload: Any, what: str) -> List[Any]:
        """The payloads of the ranks, on the host."""
        if self._member is None or self._size == 1:
            return [payload]
        exchange: Callable[..., List[Any]] = self._member.run.exchange
        return exchange(self._member, self._name, self._ranks, what, payload, self._seconds)

    def _exchange_tensors(self, tensors: Sequence[torch.Tensor], what: str) -> List[List[torch.Tensor]]:
        """By tensor those of the ranks, on the host."""
        return list(zip(*self._exchange([t.detach().cpu().clone() for t in tensors], what)))  # type: ignore[arg-type]

    def _to_record(self, tensors: Sequence[torch.Tensor], what: str) -> Optional[List[List[int]]]:
        """The groups of a collective that all ranks are about to record; None if this one passes on the host."""
        if lazy_of(tensors[0]) is None:
            return None
        groups = self._groups()
        if self._member is None:
            return groups
        call = _threads.Call(self._name, self._ranks, what, groups)
        return groups if self._member.before_collective(call, self._seconds) else None

    def _recorded_all_reduce(self, tensors: List[torch.Tensor], name: str, factor: float, groups: Any) -> List[torch.Tensor]:
        within = _part_of_op(tensors[0], factor)
        lazies = self._session().all_reduce(name, [value_of(t) for t in tensors], within, groups)
        return [_scaled(wrap(lazy, t), factor / within) for lazy, t in zip(lazies, tensors)]

    def _all_reduce(self, tensors: List[torch.Tensor], name: str, factor: float, what: str) -> List[torch.Tensor]:
        if self._size == 1:
            return [_scaled(t, factor) for t in tensors]
        what = _described(f"{what} {name}" + ("" if factor == 1 else f" times {factor:g}"), tensors)
        groups = self._to_record(tensors, what)
        if groups is not None:
            return self._recorded_all_reduce(tensors, name, factor, groups)
        results = []
        for values, tensor in zip(self._exchange_tensors(tensors, what), tensors):
            total = values[0]
            for value in values[1:]:
                total = _ON_HOST[name](total, value)
            results.append(_scaled(total, factor).to(tensor.device))
        return results

    def _all_gather(self, tensor: torch.Tensor, what: str = "all_gather") -> torch.Tensor:
        """The tensors of the ranks, stacked."""
        if self._size == 1:
            return tensor.unsqueeze(0)
        what = _described(what, [tensor])
        groups = self._to_record([tensor], what)
        if groups is not None:
            row = tensor.unsqueeze(0)
            return wrap(self._session().all_gather(value_of(row), 0, groups), tensor)
        return torch.stack(list(self._exchange_tensors([tensor], what)[0])).to(tensor.device)

    def _reduce_scatter(self, parts: torch.Tensor, name: str, factor: float) -> torch.Tensor:
        """The combined part of this rank of a tensor with a row for each."""
        if self._size == 1:
            return _scaled(parts[0], factor)
        what = _described(f"reduce_scatter {name}" + ("" if factor == 1 else f" times {factor:g}"), [parts])
        groups = self._to_record([parts], what)
        if groups is not None:
            within = _part_of_op(parts, factor)
            lazy = self._session().reduce_scatter(name, value_of(parts), within, 0, groups)
            return _scaled(wrap(lazy, parts)[0], factor / within)
        total: Optional[torch.Tensor] = None
        for value in self._exchange_tensors([parts], what)[0]:
            row = value[self._rank]
            total = row if total is None else _ON_HOST[name](total, row)
        assert total is not None
        return _scaled(total, factor).to(parts.device)

    def _all_to_all(self, parts: torch.Tensor) -> torch.Tensor:
        """Of a tensor with a row for each rank, the rows that the ranks have for this one."""
        if self._size == 1:
            return parts
        what = _described("all_to_all", [parts])
        groups = self._to_record([parts], what)
        if groups is not None:
            return wrap(self._session().all_to_all(value_of(parts), 0, 0, self._size, groups), parts)
        return torch.stack([rows[self._rank] for rows in self._exchange_tensors([parts], what)[0]]).to(parts.device)

    def _from_root(self, tensors: List[torch.Tensor], root: int, what: str) -> List[torch.Tensor]:
        """The tensors of one rank. All ranks record the same graph."""
        if self._size == 1:
            return tensors
        what = _described(f"{what} from {root}", tensors)
        groups = self._to_record(tensors, what)
        if groups is None:
            return [values[root].to(t.device) for values, t in zip(self._exchange_tensors(tensors, what), tensors)]
        session, ordinal = self._session(), _session.ordinal_of(None)
        contributions = []
        for tensor in tensors:
            own = wrap(lazy_of(upload(torch.tensor(self._rank == root), session, ordinal)), tensor)
            value = tensor.to(torch.uint8) if tensor.dtype == torch.bool else tensor
            contributions.append(torch.where(own, value, torch.zeros_like(value)))
        return [r.to(t.dtype) for r, t in zip(self._recorded_all_reduce(contributions, "sum", 1.0, groups), tensors)]

    # ---- collectives, with the arguments of torch.distributed ----

    @torch.no_grad()
    def allreduce(self, tensors: Any, opts: Any = _c10d.AllreduceOptions()) -> Any:
        tensors = [tensors] if isinstance(tensors, torch.Tensor) else list(tensors)
        for target, value in zip(tensors, self._all_reduce(tensors, *_reduction(opts, self._size), "all_reduce")):
            _put(target, value)
        return _done(tensors)

    allreduce_coalesced = allreduce

    @torch.no_grad()
    def reduce(self, tensors: Any, opts: Any = _c10d.ReduceOptions()) -> Any:
        tensors = list(tensors)
        results = self._all_reduce(tensors, *_reduction(opts, self._size), f"reduce to {opts.rootRank}")
        if self._rank == opts.rootRank:
            for target, value in zip(tensors, results):
                _put(target, value)
        return _done(tensors)

    @torch.no_grad()
    def broadcast(self, tensors: Any, opts: Any = _c10d.BroadcastOptions()) -> Any:
        tensors = [tensors] if isinstance(tensors, torch.Tensor) else list(tensors)
        for target, value in zip(tensors, self._from_root(tensors, opts.rootRank, "broadcast")):
            _put(target, value)
        return _done(tensors)

    @torch.no_grad()
    def allgather(self, output_tensors: Any, input_tensors: Any, opts: Any = _c10d.AllgatherOptions()) -> Any:
        for outputs, tensor in zip(output_tensors, input_tensors):
            same = all(output.shape == tensor.shape for output in outputs)
            gathered = self._all_gather(tensor) if same else self._all_gather_of_sizes(tensor, outputs)
            for output, value in zip(outputs, gathered):
                _put(output, value)
        return _done(output_tensors)

    def _all_gather_of_sizes(self, tensor: torch.Tensor, outputs: Sequence[torch.Tensor]) -> List[torch.Tensor]:
        """The tensors of the ranks, which have the sizes of the outputs."""
        longest = max(output.numel() for output in outputs)
        rows = self._all_gather(_padded(tensor, longest))
        return [row[: output.numel()] for row, output in zip(rows, outputs)]

    def allgather_coalesced(self, output_lists: Any, inputs: Any, opts: Any = _c10d.AllgatherOptions()) -> Any:
        return self.allgather(output_lists, inputs, opts)

    @torch.no_grad()
    def all_gather_single(self, output: Any, tensor: Any, opts: Any = _c10d.AllgatherOptions()) -> Any:
        _put(output, self._all_gather(tensor))
        return _done(output)

    def all_gather_single_coalesced(self, outputs: Any, inputs: Any, opts: Any = _c10d.AllgatherOptions()) -> Any:
        for output, tensor in zip(outputs, inputs):
            self.all_gather_single(output, tensor, opts)
        return _done(outputs)

    @torch.no_grad()
    def reduce_scatter(self, outputs: Any, input_lists: Any, opts: Any = _c10d.ReduceScatterOptions()) -> Any:
        for output, inputs in zip(outputs, input_lists):
            longest = max(t.numel() for t in inputs)
            rows = torch.stack([_padded(t, longest) for t in inputs])
            part = self._reduce_scatter(rows, *_reduction(opts, self._size))
            _put(output, part.reshape(-1)[: output.numel()])
        return _done(outputs)

    @torch.no_grad()
    def reduce_scatter_single(self, output: Any, tensor: Any, opts: Any = _c10d.ReduceScatterOptions()) -> Any:
        rows = tensor.reshape(self._size, -1)
        _put(output, self._reduce_scatter(rows, *_reduction(opts, self._size)))
        return _done(output)

    def reduce_scatter_single_coalesced(self, outputs: Any, inputs: Any, opts: Any = _c10d.ReduceScatterOptions()) -> Any:
        for output, tensor in zip(outputs, inputs):
            self.reduce_scatter_single(output, tensor, opts)
        return _done(outputs)

    @torch.no_grad()
    def alltoall(self, outputs: Any, inputs: Any, opts: Any = _c10d.AllToAllOptions()) -> Any:
        longest = max(max(t.numel() for t in inputs), max(t.numel() for t in outputs))
        longest = max(self._exchange(longest, "all_to_all"))
        rows = self._all_to_all(torch.stack([_padded(t, longest) for t in inputs]))
        for output, row in zip(outputs, rows):
            _put(output, row[: output.numel()])
        return _done(outputs)

    @torch.no_grad()
    def all_to_all_single(
        self, output: Any, tensor: Any, output_split_sizes: Any = None, input_split_sizes: Any = None,
        opts: Any = _c10d.AllToAllOptions(),
    ) -> Any:
        if not output_split_sizes and not input_split_sizes:
            _put(output, self._all_to_all(tensor.reshape(self._size, -1)))
            return _done(output)
        into = list(output_split_sizes or [output.shape[0] // self._size] * self._size)
        of = list(input_split_sizes or [tensor.shape[0] // self._size] * self._size)
        return self.alltoall(list(output.split(into)), list(tensor.split(of)), opts)

    @torch.no_grad()
    def scatter(self, outputs: Any, input_lists: Any, opts: Any = _c10d.ScatterOptions()) -> Any:
        for number, output in enumerate(outputs):
            given = self._rank == opts.rootRank
            inputs = input_lists[number] if given else [torch.zeros_like(output) for _ in range(self._size)]
            rows = torch.stack([t.reshape(-1) for t in inputs])
            _put(output, self._from_root([rows], opts.rootRank, "scatter")[0][self._rank])
        return _done(outputs)

    @torch.no_grad()
    def gather(self, output_lists: Any, inputs: Any, opts: Any = _c10d.GatherOptions()) -> Any:
        for number, tensor in enumerate(inputs):
            gathered = self._all_gather(tensor, f"gather to {opts.rootRank}")
            if self._rank == opts.rootRank:
                for output, value in zip(output_lists[number], gathered):
                    _put(output, value)
        return _done(output_lists)

    @torch.no_grad()
    def gather_single(self, output: Any, tensor: Any, opts: Any = _c10d.GatherOptions()) -> Any:
        gathered = self._all_gather(tensor, f"gather to {opts.rootRank}")
        if self._rank == opts.rootRank:
            _put(output, gathered)
        return _done(output)

    # Between two ranks: the others record nothing, so the value passes on the host.

    @torch.no_grad()
    def send(self, tensors: Any, dst: int, tag: int = 0) -> Any:
        if self._member is None:
            raise ValueError("there is no other rank")
        for tensor in tensors:
            self._member.run.send(self._member, (self._name, self._rank, dst, tag), tensor.detach().cpu().clone())
        return _done(tensors)

    def _receive(self, tensors: Any, sources: Sequence[int], tag: int) -> "_Receive":
        if self._member is None:
            raise ValueError("there is no other rank")
        keys = [((self._name, src, self._rank, tag), self._ranks[src]) for src in sources]
        return _Receive(self._member, list(tensors), keys, self._seconds)

    def recv(self, tensors: Any, src: int, tag: int = 0) -> Any:
        return self._receive(tensors, [src], tag)

    def recv_anysource(self, tensors: Any, tag: int = 0) -> Any:
        return self._receive(tensors, [r for r in range(self._size) if r != self._rank], tag)

    def barrier(self, opts: Any = None) -> Any:
        self._exchange(None, "barrier")
        return _done([])

    # Names of PyTorch before 2.12.
    _allgather_base = all_gather_single
    _reduce_scatter_base = reduce_scatter_single
    alltoall_base = all_to_all_single
    allgather_into_tensor_coalesced = all_gather_single_coalesced
    reduce_scatter_tensor_coalesced = reduce_scatter_single_coalesced
    gather_into_tensor = gather_single


def _padded(tensor: torch.Tensor, length: int) -> torch.Tensor:
    flat = tensor.reshape(-1)
    missing = length - flat.numel()
    return torch.cat([flat, flat.new_zeros(missing)]) if missing else flat


def create(options: Any, backend_options: Any = None) -> LazyProcessGroup:
    """Makes a group, for torch.distributed."""
    member = _threads.member()
    ranks = list(options.global_ranks_in_group) or list(range(options.group_size))
    seconds = _seconds(options.timeout, _threads.WAIT_SECONDS)
    # A group of all is made before torch.distributed has one, and others after that.
    whole = not dist.is_initialized()
    rank, count = (options.group_rank, options.group_size) if whole else (dist.get_rank(), dist.get_world_size())
    if member is None and options.group_size > 1:
        if options.group_size != count:
            raise ValueError(
                f"a group of the backend hlokit of the ranks {ranks} is one of {count} ranks: the first group of the backend "
                "has to have all of them, as that of init_process_group"
            )
        member = _processes.join(options.store, rank, count, seconds)
    elif member is not None and (rank, count) != (member.index, member.run.count):
        raise ValueError(f"this is rank {member.index} of {member.run.count}, and cannot become rank {rank} of {count}")
    if member is not None:
        member.join()
        if whole:
            member.seconds = seconds
        from . import _sharded_random  # imports DTensor, of which it needs a part

        _sharded_random.install()
    return LazyProcessGroup(options.group_rank, options.group_size, ranks, options.group_id, seconds)

# SPDX-License-Identifier: Apache-2.0
"""Processes of one machine as ranks of torch.distributed: those of torchrun, of torch.multiprocessing, or started by hand.

Programs with collectives run over the connections that processes of JAX have too (interp/processes/network_world.h). What
else the ranks need of each other passes through the first process, in which a thread stands for each of the others as the
threads of spawn() do: how they keep step, values on the host, and who waits for whom (_threads.Run).
"""

import contextlib
import ctypes
import json
import math
import os
import shutil
import socket
import struct
import sys
import tempfile
import threading
import time
from multiprocessing import util
from multiprocessing.connection import Connection
from typing import Any, Callable, Dict, List, Optional, Tuple

import torch

from hlokit import _hlokit

from . import _session, _threads

_CONNECT_SECONDS = 60.0
_HELLO_SECONDS = 5.0  # for a process that has connected to say its rank
_END_SECONDS = 30.0  # for the answers to the last calls
_KEY = "hlokit/first"  # in the store
_HELLO = struct.Struct("<II")  # rank and number of ranks
_WELCOME = b"hlokit"
_LENGTH = struct.Struct("<Q")
_LONGEST_PATH = 100  # of a socket, in Linux 107

# ---- messages ----

# A message is the length of a header, the header, which is JSON, and the bytes of its tensors and strings of bytes. Nothing
# in it names code. In JSON, what JSON does not have is a list that begins with the name of its type, as lists do.

_ERRORS = {error.__name__: error for error in (RuntimeError, ValueError, TypeError, NotImplementedError, KeyboardInterrupt)}


def _bytes_of(tensor: torch.Tensor) -> bytes:
    flat = tensor.detach().resolve_conj().resolve_neg().contiguous()
    return ctypes.string_at(flat.data_ptr(), flat.numel() * flat.element_size()) if flat.numel() else b""


def _plain(value: Any, parts: List[bytes]) -> Any:
    """A value in JSON; its bytes are added to the parts."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, list):
        return ["list", *(_plain(item, parts) for item in value)]
    if isinstance(value, (tuple, range)):
        return ["tuple", *(_plain(item, parts) for item in value)]
    if isinstance(value, bytes):
        parts.append(value)
        return ["bytes", len(value)]
    if isinstance(value, torch.Tensor):
        parts.append(_bytes_of(value))
        return ["tensor", str(value.dtype).rpartition(".")[2], list(value.shape)]
    if isinstance(value, _threads.Call):
        return ["call", value.group, value.ranks, value.what, value.partition]
    if isinstance(value, BaseException):
        kind = next((name for name, error in _ERRORS.items() if type(value) is error), "")
        return ["error", kind or "RuntimeError", str(value) if kind else f"{type(value).__name__}: {value}"]
    raise TypeError(f"no message has a {type(value).__name__}")


class _Reader:
    """What a message says."""

    def __init__(self, message: bytes):
        (length,) = _LENGTH.unpack_from(message)
        self._header = message[_LENGTH.size : _LENGTH.size + length]
        self._rest = memoryview(message)[_LENGTH.size + length :]

    def _take(self, size: int) -> bytearray:
        if not 0 <= size <= len(self._rest):
            raise ValueError("it ends early")
        taken, self._rest = bytearray(self._rest[:size]), self._rest[size:]
        return taken

    def _tensor(self, name: str, shape: List[int]) -> torch.Tensor:
        dtype = getattr(torch, name)
        if not isinstance(dtype, torch.dtype) or any(size < 0 for size in shape):
            raise ValueError("a tensor has no such type or shape")
        taken = self._take(math.prod(shape) * dtype.itemsize)
        flat = torch.frombuffer(taken, dtype=torch.uint8).view(dtype) if taken else torch.empty(0, dtype=dtype)
        return flat.reshape(shape)

    def _value(self, plain: Any) -> Any:
        if not isinstance(plain, list):
            return plain
        kind, *items = plain
        if kind == "list":
            return [self._value(item) for item in items]
        if kind == "tuple":
            return tuple(self._value(item) for item in items)
        if kind == "bytes":
            return bytes(self._take(*items))
        if kind == "tensor":
            return self._tensor(*items)
        if kind == "call":
            group, ranks, what, partition = items
            return _threads.Call(group, tuple(ranks), what, partition)
        if kind == "error":
            name, text = items
            return _ERRORS[name](text)
        raise ValueError("a value has no such type")

    def value(self) -> Any:
        return self._value(json.loads(self._header))


def _send(connection: Connection, message: Any) -> None:
    parts: List[bytes] = []
    header = json.dumps(_plain(message, parts)).encode()
    connection.send_bytes(b"".join([_LENGTH.pack(len(header)), header, *parts]))


def _receive(connection: Connection) -> Any:
    message = connection.recv_bytes()
    try:
        return _Reader(message).value()
    except Exception as error:
        raise OSError(f"a message that is none: {error}") from error


# ---- calls ----


class _OtherProcess(_threads.Member):
    """What stands for another process in the first one."""

    def __init__(self, run: _threads.Run, index: int, connection: Connection):
        super().__init__(run, index)
        self._connection = connection
        self._methods = {name: getattr(run, name) for name in ("meet", "sync", "exchange", "send", "receive", "end")}

    def run_recorded(self, mark: Optional[Callable[[], None]] = None) -> None:
        _send(self._connection, ("run", None))
        error = _receive(self._connection)
        if error is not None:
            raise error

    def serve(self) -> None:
        """Does what the process asks for, until it ends."""
        why = f"xla:{self.index} has ended"
        try:
            while True:
                name, args = _receive(self._connection)
                if name == "fail":
                    why = args[0]
                    break
                try:
                    answer = ("value", self._methods[name](self, *args))
                except (EOFError, OSError):
                    raise
                except BaseException as error:  # noqa: BLE001: raised by the process
                    answer = ("error", error)
                _send(self._connection, answer)
                if name == "end":
                    break
        except (EOFError, OSError):
            pass
        self.run.leave(self.index, why)


class _FirstProcess:
    """The run as the other processes have it: each call is one of the first process."""

    def __init__(self, connection: Connection, count: int):
        self.count = count
        self._connection = connection
        self._lock = threading.RLock()

    def _call(self, own: _threads.Member, mark: Optional[Callable[[], None]], name: str, *args: Any) -> Any:
        with self._lock:
            try:
                return self._result_of(own, mark, name, args)
            except (EOFError, OSError):
                raise RuntimeError(f"{name}: xla:0 has ended") from None

    def _result_of(self, own: _threads.Member, mark: Optional[Callable[[], None]], name: str, args: Tuple[Any, ...]) -> Any:
        _send(self._connection, (name, args))
        failed: Optional[BaseException] = None
        while True:
            kind, value = _receive(self._connection)
            if kind == "value":
                return value
            if kind == "error":
                raise failed or value
            try:
                own.run_recorded(mark)
            except BaseException as error:  # noqa: BLE001: raised below
                failed = error
            _send(self._connection, None if failed is None else RuntimeError(str(failed)))

    def meet(self, own: _threads.Member, call: _threads.Call, seconds: float = _threads.WAIT_SECONDS) -> bool:
        return bool(self._call(own, None, "meet", call, seconds))

    def sync(
        self, own: _threads.Member, mark: Optional[Callable[[], None]] = None, seconds: float = _threads.WAIT_SECONDS
    ) -> None:
        self._call(own, mark, "sync", None, seconds)  # mark() is of this process

    def exchange(
        self, own: _threads.Member, name: Any, ranks: Any, what: str, payload: Any, seconds: float = _threads.WAIT_SECONDS
    ) -> List[Any]:
        return self._call(own, None, "exchange", name, ranks, what, payload, seconds)  # type: ignore[no-any-return]

    def send(self, own: _threads.Member, key: Any, payload: Any) -> None:
        self._call(own, None, "send", key, payload)

    def receive(self, own: _threads.Member, keys: Any, seconds: float = _threads.WAIT_SECONDS) -> Any:
        return self._call(own, None, "receive", keys, seconds)

    def end(self, own: _threads.Member) -> None:
        self._call(own, None, "end")

    def leave(self, index: int, why: str) -> None:
        with self._lock:
            _send(self._connection, ("fail", (why,)))


class _Process(_threads.Member):
    """This process."""

    def place(self) -> Tuple[Any, int]:
        return _session.current(), 0


def _machine() -> str:
    with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
        return file.read().strip()


def _is_of_own_user(peer: socket.socket) -> bool:
    """Whether the process at the other end of a socket of this machine is one of this user, as the kernel says."""
    _, user, _ = struct.unpack("3i", peer.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i")))
    return bool(user == os.geteuid())


def _received(peer: socket.socket, size: int, until: float) -> bytes:
    """The next bytes from a socket, fewer if it ends. Raises OSError when the time is up."""
    found = b""
    while len(found) < size:
        peer.settimeout(max(until - time.monotonic(), 0.001))
        part = peer.recv(size - len(found))
        if not part:
            break
        found += part
    return found


def _rank_of(peer: socket.socket, count: int, others: Dict[int, Connection], end: float) -> Optional[int]:
    """The rank that the process at the other end has; None if it has none that is still to come."""
    if not _is_of_own_user(peer):
        return None
    hello = _received(peer, _HELLO.size, min(end, time.monotonic() + _HELLO_SECONDS))
    if len(hello) < _HELLO.size:
        return None
    rank, of = _HELLO.unpack(hello)
    if of != count or not 0 < rank < count or rank in others:
        return None
    peer.settimeout(None)
    peer.sendall(_WELCOME)
    return int(rank)


def _accept_all(listener: socket.socket, count: int, seconds: float) -> Dict[int, Connection]:
    """Connections to the other ranks; who is none of them, or none of this user, is sent away."""
    end, others = time.monotonic() + seconds, {}  # type: float, Dict[int, Connection]
    while len(others) < count - 1:
        left = end - time.monotonic()
        if left <= 0:
            absent = ", ".join(str(rank) for rank in range(1, count) if rank not in others)
            raise RuntimeError(f"init_process_group: waited {seconds:g} s for the ranks {absent}")
        listener.settimeout(left)
        with contextlib.suppress(OSError):  # of the time, which is checked above, or of one that is no rank
            peer, _ = listener.accept()
            with peer:
                rank = _rank_of(peer, count, others, end)
                if rank is not None:
                    others[rank] = Connection(peer.detach())
    return others


def _folder() -> str:
    """A new folder that only this user can look into, with a short name."""
    parent = tempfile.gettempdir()
    return tempfile.mkdtemp(prefix="hlokit-", dir=parent if len(parent) < _LONGEST_PATH - 30 else "/tmp")


def _listen(store: Any, count: int, seconds: float) -> Tuple[_threads.Run, List[threading.Thread]]:
    """Makes this process the first one."""
    folder = _folder()
    try:
        with socket.socket(socket.AF_UNIX) as listener:
            path = os.path.join(folder, "first")
            listener.bind(path)
            listener.listen(max(count, 8))
            store.set(_KEY, json.dumps({"machine": _machine(), "path": path}))
            others = _accept_all(listener, count, seconds)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    run, threads = _threads.Run(None, count), []
    for rank, connection in sorted(others.items()):
        other = _OtherProcess(run, rank, connection)
        threads.append(threading.Thread(target=other.serve, name=f"hlokit rank {rank}", daemon=True))
    for thread in threads:
        thread.start()
    return run, threads


def _connect(store: Any, rank: int, count: int, seconds: float) -> _FirstProcess:
    end = time.monotonic() + seconds
    try:
        first = json.loads(store.get(_KEY))
        machine, path = str(first["machine"]), str(first["path"])
    except (ValueError, LookupError, TypeError):
        raise RuntimeError(f"the store of torch.distributed has no address of rank 0 in {_KEY}") from None
    if machine != _machine():
        raise RuntimeError("ranks of the backend hlokit are threads or processes of one machine")
    with socket.socket(socket.AF_UNIX) as peer:
        try:
            peer.settimeout(seconds)
            peer.connect(path)
            if not _is_of_own_user(peer):
                raise RuntimeError("rank 0 is a process of another user")
            peer.sendall(_HELLO.pack(rank, count))
            welcome = _received(peer, len(_WELCOME), end)
        except OSError as error:
            raise RuntimeError(f"rank {rank} of {count} does not reach rank 0: {error}") from None
        if welcome != _WELCOME:
            raise RuntimeError(f"rank 0 does not take this process as rank {rank} of {count}: it has one, or another number")
        peer.settimeout(None)
        return _FirstProcess(Connection(peer.detach()), count)


def join(store: Any, rank: int, count: int, seconds: float) -> _threads.Member:
    """Makes this process one of several, for good: torch.distributed may make groups of them again. The store is that of
    torch.distributed, and the others have these seconds to come."""
    if int(os.environ.get("LOCAL_WORLD_SIZE", count)) != count:
        raise RuntimeError("ranks of the backend hlokit are threads or processes of one machine")
    threads: List[threading.Thread] = []
    run: Any
    if rank == 0:
        run, threads = _listen(store, count, seconds)
    else:
        run = _connect(store, rank, count, seconds)
    own = _Process(run, rank)
    own.seconds = seconds
    processes = _hlokit._Processes()
    addresses = run.exchange(own, "addresses", range(count), "the start", processes.address, seconds)
    processes.connect(rank, addresses, min(seconds, _CONNECT_SECONDS))
    _session.use_processes(processes)
    _threads.set_process(own)
    util.Finalize(None, _end, (own, threads), exitpriority=0)  # not atexit: also in processes of multiprocessing
    return own


def _end(own: _threads.Member, threads: List[threading.Thread]) -> None:
    """Takes part in what the others run until all have ended."""
    error = getattr(sys, "last_value", None) or sys.exc_info()[1]
    try:
        if error is None or isinstance(error, SystemExit) and not error.code:
            own.end()
        else:
            own.run.leave(own.index, f"xla:{own.index} failed: {error}")
    except (RuntimeError, OSError):  # another one has failed, and says so itself
        return
    for thread in threads:
        thread.join(_END_SECONDS)

# SPDX-License-Identifier: Apache-2.0
"""Processes of one machine as ranks of torch.distributed: those of torchrun, of torch.multiprocessing, or started by hand.

Programs with collectives run over the connections that processes of JAX have too (interp/processes/network_world.h). What
else the ranks need of each other passes through the first process, in which a thread stands for each of the others as the
threads of spawn() do: how they keep step, values on the host, and who waits for whom (_threads.Run).
"""

import os
import pickle
import secrets
import sys
import threading
from multiprocessing import util
from multiprocessing.connection import Client, Connection, Listener
from typing import Any, Callable, List, Optional, Tuple

from hlokit import _hlokit

from . import _session, _threads

_CONNECT_SECONDS = 60.0
_END_SECONDS = 30.0  # for the answers to the last calls
_KEY = "hlokit/first"  # in the store


def _send(connection: Connection, message: Any) -> None:
    # Not connection.send(), for which PyTorch puts tensors in memory that processes share.
    connection.send_bytes(pickle.dumps(message))


def _receive(connection: Connection) -> Any:
    return pickle.loads(connection.recv_bytes())


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

    def meet(self, own: _threads.Member, call: _threads.Call) -> bool:
        return bool(self._call(own, None, "meet", call))

    def sync(self, own: _threads.Member, mark: Optional[Callable[[], None]] = None) -> None:
        self._call(own, mark, "sync")

    def exchange(self, own: _threads.Member, key: Any, ranks: Any, what: str, payload: Any) -> List[Any]:
        return self._call(own, None, "exchange", key, ranks, what, payload)  # type: ignore[no-any-return]

    def send(self, own: _threads.Member, key: Any, payload: Any) -> None:
        self._call(own, None, "send", key, payload)

    def receive(self, own: _threads.Member, keys: Any) -> Any:
        return self._call(own, None, "receive", keys)

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


def _listen(store: Any, count: int) -> Tuple[_threads.Run, List[threading.Thread]]:
    """Makes this process the first one."""
    key = secrets.token_bytes(32)
    run, threads = _threads.Run(None, count), []
    with Listener(("127.0.0.1", 0), backlog=count, authkey=key) as listener:
        store.set(_KEY, pickle.dumps((_machine(), listener.address, key)))
        for _ in range(count - 1):
            connection = listener.accept()
            other = _OtherProcess(run, _receive(connection), connection)
            threads.append(threading.Thread(target=other.serve, name=f"hlokit rank {other.index}", daemon=True))
    for thread in threads:
        thread.start()
    return run, threads


def _connect(store: Any, rank: int, count: int) -> _FirstProcess:
    machine, address, key = pickle.loads(store.get(_KEY))
    if machine != _machine():
        raise RuntimeError("ranks of the backend hlokit are threads or processes of one machine")
    connection = Client(address, authkey=key)
    _send(connection, rank)
    return _FirstProcess(connection, count)


def join(store: Any, rank: int, count: int) -> _threads.Member:
    """Makes this process one of several, once: torch.distributed may make groups of them again. The store is that of
    torch.distributed."""
    own = _threads.of_process()
    if own is not None:
        if (own.index, own.run.count) != (rank, count):
            raise ValueError(f"this process is rank {own.index} of {own.run.count}, not {rank} of {count}")
        return own
    if int(os.environ.get("LOCAL_WORLD_SIZE", count)) != count:
        raise RuntimeError("ranks of the backend hlokit are threads or processes of one machine")
    threads: List[threading.Thread] = []
    run: Any
    if rank == 0:
        run, threads = _listen(store, count)
    else:
        run = _connect(store, rank, count)
    own = _Process(run, rank)
    processes = _hlokit._Processes()
    addresses = run.exchange(own, "addresses", range(count), "the start", processes.address)
    processes.connect(rank, addresses, _CONNECT_SECONDS)
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

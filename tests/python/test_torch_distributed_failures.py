# SPDX-License-Identifier: Apache-2.0
"""torch.distributed where something goes wrong: ranks that do not meet, that end early or late, that are others than before,
and processes that are no ranks."""

import contextlib
import datetime
import json
import pickle
import socket
import stat
import struct
import threading
import time
import types
from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="python3-torch is not installed")

import torch.distributed as dist  # noqa: E402
from torch.testing._internal.distributed.fake_pg import FakeStore  # noqa: E402
from torch_parallel_programs import answers_of, filled, new_session  # noqa: E402

import hlokit.torch as ht  # noqa: E402
from hlokit.torch import _processes, _threads  # noqa: E402


@pytest.fixture(autouse=True)
def session():
    new_session()


# ---- collectives that do not take place ----


def test_collectives_on_the_host_are_in_step_after_one_that_failed():
    def run(rank):
        found = []
        for _ in range(10):
            with pytest.raises(RuntimeError, match="all devices wait: xla:0 for all_reduce .* on the host, xla:1 for all_reduce"):
                dist.all_reduce(filled(100, 1, device="tpu" if rank == 1 else "cpu"))
            for scale in (1, 10, 100):
                value = filled(scale * (rank + 1), 1, device="cpu")
                dist.all_reduce(value)
                found.append(value.item())
        return found

    assert answers_of(run, 2) == [[3, 30, 300] * 10] * 2


def test_what_a_rank_offered_that_gave_up_is_nobodys():
    run = _threads.Run(None, 2)
    first, second = _threads.Member(run, 0), _threads.Member(run, 1)
    with pytest.raises(RuntimeError, match="sum on the host: waited 0.05 s for xla:1"):
        run.exchange(first, "group", [0, 1], "sum", "old", 0.05)
    found = []
    other = threading.Thread(target=lambda: found.append(run.exchange(second, "group", [0, 1], "sum", "theirs")))
    other.start()
    assert run.exchange(first, "group", [0, 1], "sum", "new") == ["new", "theirs"]
    other.join()
    assert found == [["new", "theirs"]]
    assert not run._payloads and not run._taken


# ---- who waits for whom, and how long ----


def test_a_receive_from_any_rank_waits_for_those_that_have_not_ended():
    def run(rank):
        dist.init_process_group("hlokit")
        value = torch.zeros(1)
        if rank == 2:
            time.sleep(1)
            dist.send(filled(7, 1, device="cpu"), 0)
        if rank == 0:
            assert dist.recv(value) == 2 and value.item() == 7
            with pytest.raises(RuntimeError, match="a receive: xla:[12] has ended"):
                dist.recv(value)

    ht.spawn(run, nprocs=3)


def test_timeouts_of_torch_distributed():
    done = threading.Event()

    def run(rank):
        dist.init_process_group("hlokit", timeout=datetime.timedelta(seconds=0.5))
        group = dist.new_group([0, 1], timeout=datetime.timedelta(seconds=0.25))
        if rank == 0:
            work = dist.irecv(torch.zeros(1), 1)
            for call, seconds in ((lambda: work.wait(datetime.timedelta(seconds=0.125)), "0.125"), (work.wait, "0.5"),
                                  (dist.barrier, "0.5"), (lambda: dist.barrier(group), "0.25"),
                                  (lambda: dist.all_reduce(filled(1, 1, device="tpu")), "0.5"),
                                  (lambda: dist.all_reduce(filled(1, 1, device="tpu"), group=group), "0.25")):
                with pytest.raises(RuntimeError, match=f"waited {seconds} s for xla:1"):
                    call()
            done.set()
        else:
            done.wait(60)

    ht.spawn(run, nprocs=2)


def test_a_rank_that_has_ended_waits_however_long_others_run(monkeypatch):
    hours = iter(range(0, 10**9, 3600))
    monkeypatch.setattr(_threads, "time", types.SimpleNamespace(monotonic=lambda: next(hours)))
    monkeypatch.setattr(_threads, "_POLL_SECONDS", 0.01)
    run = _threads.Run(None, 2)
    failed = []

    def end():
        try:
            run.end(_threads.Member(run, 0))
        except RuntimeError as error:
            failed.append(error)

    early = threading.Thread(target=end)
    early.start()
    early.join(0.2)
    assert early.is_alive()
    run.end(_threads.Member(run, 1))
    early.join(10)
    assert not early.is_alive() and not failed


# ---- ranks that are others than before ----


def test_threads_keep_their_ranks():
    store = dist.HashStore()

    def run(rank):
        dist.init_process_group("hlokit")
        dist.destroy_process_group()
        with pytest.raises(ValueError, match=f"this is rank {rank} of 2, and cannot become rank {1 - rank} of 2"):
            dist.init_process_group("hlokit", store=store, rank=1 - rank, world_size=2)

    ht.spawn(run, nprocs=2)


def test_a_process_keeps_its_rank(monkeypatch):
    monkeypatch.setattr(_threads, "_process", [_threads.Member(_threads.Run(None, 2), 0)])
    for rank, count in ((1, 2), (0, 3), (0, 1)):
        with pytest.raises(ValueError, match=f"this is rank 0 of 2, and cannot become rank {rank} of {count}"):
            dist.init_process_group("hlokit", store=dist.HashStore(), rank=rank, world_size=count)


def test_the_first_group_of_the_backend_has_all_ranks():
    dist.init_process_group("fake", store=FakeStore(), rank=2, world_size=4)
    try:
        with pytest.raises(ValueError, match=r"a group of the backend hlokit of the ranks \[2, 3\] is one of 4 ranks"):
            dist.new_group([2, 3], backend="hlokit")
    finally:
        dist.destroy_process_group()


# ---- messages ----


@pytest.fixture
def connections():
    ends = [_processes.Connection(end.detach()) for end in socket.socketpair()]
    yield ends
    for end in ends:
        end.close()


@pytest.mark.parametrize("value", [
    None, True, 3, 1.5, "text", b"bytes", [], (), [1, (2, [None, b"\0"])], ("list", ["list"]), range(3),
    _threads.Call("0", (0, 1), "all_reduce", [[0, 1]]), _threads.Call("0", (0, 1), "all_reduce", None),
], ids=str)  # fmt: skip
def test_messages(value, connections):
    _processes._send(connections[0], value)
    assert _processes._receive(connections[1]) == (tuple(value) if isinstance(value, range) else value)


@pytest.mark.parametrize("value", [
    torch.arange(6).reshape(2, 3), torch.tensor(1.5), torch.empty(0, 3), torch.tensor([True, False]), torch.arange(6.0)[::2],
    torch.arange(4.0).reshape(2, 2).t(), torch.tensor([1 + 2j]), torch.tensor([1 + 2j]).conj(), torch.tensor([1.5]).bfloat16(),
    torch.ones(2, dtype=torch.float16), torch.tensor([1.5, -2]).to(torch.float8_e5m2),
], ids=lambda value: f"{value.dtype}{list(value.shape)}")  # fmt: skip
def test_tensors_in_messages(value, connections):
    _processes._send(connections[0], ["before", value, [value], b"after"])
    before, first, (second,), after = _processes._receive(connections[1])
    assert (before, after) == ("before", b"after")
    for found in (first, second):
        assert found.dtype == value.dtype and found.shape == value.shape
        assert torch.equal(found.to(torch.complex128), value.to(torch.complex128))
        found.zero_()  # it has memory of its own


def test_errors_in_messages(connections):
    for error, kind, text in ((ValueError("a"), ValueError, "a"), (KeyError("b"), RuntimeError, "KeyError: 'b'")):
        _processes._send(connections[0], error)
        found = _processes._receive(connections[1])
        assert type(found) is kind and str(found) == text


class Opens:
    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return open, (self.path, "w")


def header(value, rest=b""):
    text = json.dumps(value).encode()
    return struct.pack("<Q", len(text)) + text + rest


@pytest.mark.parametrize("message", [
    b"", b"\0", header(["bytes", 9], b"12345678"), header(["bytes", -1]), header(["tensor", "float32", [2]], b"1234567"),
    header(["tensor", "float32", [-1, -1]], b"1234"), header(["tensor", "load", [1]], b"1234"), header(["error", "SystemExit", ""]),
    header(["call"]), header(["other"]), header([]), header([[1]]), struct.pack("<Q", 2**60) + b"{",
])  # fmt: skip
def test_what_is_no_message(message, connections):
    connections[0].send_bytes(message)
    with pytest.raises(OSError, match="a message that is none"):
        _processes._receive(connections[1])


def test_messages_run_nothing(tmp_path, connections):
    opened = tmp_path / "opened"
    connections[0].send_bytes(pickle.dumps(Opens(str(opened))))
    with pytest.raises(OSError, match="a message that is none"):
        _processes._receive(connections[1])
    store = dist.HashStore()
    store.set(_processes._KEY, pickle.dumps(Opens(str(opened))))
    with pytest.raises(RuntimeError, match="the store of torch.distributed has no address of rank 0"):
        _processes._connect(store, 1, 2, 1)
    assert not opened.exists()


def test_a_process_that_sends_no_message_has_ended(connections):
    run = _threads.Run(None, 2)
    serves = threading.Thread(target=_processes._OtherProcess(run, 1, connections[0]).serve)
    serves.start()
    connections[1].send_bytes(b"no message")
    serves.join(10)
    assert run._left == {1: "xla:1 has ended"}


# ---- how processes find the first one ----


@contextlib.contextmanager
def first_process(count, seconds=20.0):
    """The address of a first process, and what becomes of it."""
    store, found = dist.HashStore(), []

    def listen():
        try:
            found.append(_processes._listen(store, count, seconds))
        except RuntimeError as error:
            found.append(error)

    thread = threading.Thread(target=listen)
    thread.start()
    yield store, json.loads(store.get(_processes._KEY))["path"], found
    thread.join(30)
    assert not thread.is_alive()


def says(path, hello):
    """Whether the first process takes one that says this."""
    with socket.socket(socket.AF_UNIX) as peer:
        peer.connect(path)
        peer.sendall(hello)
        peer.settimeout(10)
        with contextlib.suppress(ConnectionResetError):
            return peer.recv(10) == _processes._WELCOME
        return False


def test_processes_that_are_no_ranks_are_sent_away():
    with first_process(3) as (store, path, found):
        folder = Path(path).parent
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        others = [_processes._connect(store, 2, 3, 10)]
        stray = socket.socket(socket.AF_UNIX)
        stray.connect(path)
        stray.close()
        for rank, count in ((0, 3), (2, 3), (3, 3), (2**32 - 1, 3), (1, 2)):
            assert not says(path, struct.pack("<II", rank, count))
        with pytest.raises(RuntimeError, match="rank 0 does not take this process as rank 2 of 3"):
            _processes._connect(store, 2, 3, 10)
        others.append(_processes._connect(store, 1, 3, 10))
    run, threads = found[0]
    assert run.count == 3 and [thread.name for thread in threads] == ["hlokit rank 1", "hlokit rank 2"]
    assert not folder.exists()
    for other in others:
        other._connection.close()
    for thread in threads:
        thread.join(10)


def test_a_process_that_says_nothing_holds_up_nobody_for_long(monkeypatch):
    monkeypatch.setattr(_processes, "_HELLO_SECONDS", 0.2)
    with first_process(2) as (store, path, found), socket.socket(socket.AF_UNIX) as stray:
        stray.connect(path)
        stray.sendall(b"\1")
        _processes._connect(store, 1, 2, 10)._connection.close()
    assert len(found[0][1]) == 1


def test_ranks_that_do_not_come():
    with first_process(3, seconds=1) as (store, path, found):
        other = _processes._connect(store, 1, 3, 10)
    assert str(found[0]) == "init_process_group: waited 1 s for the ranks 2"
    assert not Path(path).exists()
    other._connection.close()


def test_processes_of_other_users_are_sent_away(monkeypatch):
    monkeypatch.setattr(_processes.os, "geteuid", lambda: 12345678)
    with first_process(2, seconds=0.5) as (store, path, found):
        assert not says(path, struct.pack("<II", 1, 2))
        with pytest.raises(RuntimeError, match="rank 0 is a process of another user"):
            _processes._connect(store, 1, 2, 10)
    assert "waited 0.5 s for the ranks 1" in str(found[0])

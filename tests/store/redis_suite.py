# SPDX-License-Identifier: Apache-2.0
"""Caches in Redis, against redis-server and against servers that answer as it does not."""
import random
import shutil
import signal
import time

from servers import HOST, AnsweringServer, CuttingProxy, Redis, SendingServer, SilentServer
from store_tools import MODEL, kill_while_in_use, race, round_trip
from suite import Suite


class RedisSuite(Suite):
    def tests(self):
        if not shutil.which("redis-server"):
            print("skipped: redis-server is not installed (tools/install-deps test)")
            return []
        tests = [self.redis_round_trip, self.redis_race, self.redis_login, self.redis_odd_answers, self.redis_damaged,
                 self.redis_down, self.redis_stalls, self.redis_hostile, self.redis_cut]
        return tests + ([self.redis_killed, self.redis_killed_writers] if self.full else [])

    def redis_round_trip(self):
        redis = self.use(Redis())
        round_trip(self.tools, f"redis://{HOST}:{redis.port}/2?prefix=team", "Redis")
        assert redis.command("DBSIZE") == b":0\r\n"  # all is in database 2
        by_environment = self.tools.run("ir-dump", *MODEL, "--emit=metrics",
                                        env={"XLA_PERSISTENT_CACHE_PATH": f"redis://{HOST}:{redis.port}/2?team"})
        assert by_environment.count("PersistentCacheRedisHit") == 1

    def redis_race(self):
        redis = self.use(Redis())
        race(self.tools, f"redis://{HOST}:{redis.port}")
        assert len(redis.keys()) == 1

    def redis_login(self):
        redis = self.use(Redis(password="pass-word"))
        address = f"{HOST}:{redis.port}"
        round_trip(self.tools, f"redis://:pass-word@{address}/0?prefix=a", "Redis")
        round_trip(self.tools, f"redis://{address}/0?prefix=b", "Redis", {"REDISCLI_AUTH": "pass-word"})
        for cache in (f"redis://:very-secret@{address}", f"redis://me:very-secret@{address}", f"redis://{address}"):
            wrong = self.tools.cached(cache)
            assert len(wrong.warnings()) == 1 and wrong.count("PersistentCacheRedisError") == 1, wrong.err
            assert wrong.count("PersistentCacheRedisSkipped") == 1  # the entry is not written either

    def redis_odd_answers(self):
        # SCAN finds a key that does not have the prefix.
        scan = b"*2\r\n$1\r\n0\r\n*1\r\n$1\r\nk\r\n"
        server = self.use(AnsweringServer({b"GETRANGE": b"$0\r\n\r\n", b"EXISTS": b":0\r\n", b"SET": b"+OK\r\n",
                                           b"SCAN": scan}))
        self.tools.cached(f"redis://{HOST}:{server.port}", explain=True)
        assert b"SCAN" in server.commands and b"GET" not in server.commands, server.commands
        server.answers[b"SCAN"] = b"*2\r\n$1\r\n7\r\n*0\r\n"  # a scan without an end
        self.tools.cached(f"redis://{HOST}:{server.port}", explain=True)
        assert server.commands.count(b"SCAN") <= 4, server.commands

    def redis_damaged(self):
        redis = self.use(Redis())
        cache = f"redis://{HOST}:{redis.port}"
        self.tools.cached(cache)
        key, = redis.keys()
        for damage in (("SETRANGE", key, 300, "damage"), ("SET", key, ""), ("SET", key, "short")):
            redis.command(*damage)
            damaged = self.tools.cached(cache)
            assert damaged.count("PersistentCacheDeserializeFailure") == 1 and len(damaged.warnings()) == 1
            assert self.tools.cached(cache).count("PersistentCacheRedisHit") == 1  # written again
        redis.command("DEL", key)
        redis.command("LPUSH", key, "a list")
        assert len(self.tools.cached(cache).warnings()) == 1

    def redis_down(self):
        redis = self.use(Redis())
        cache = f"redis://{HOST}:{redis.port}"
        self.tools.cached(cache)
        redis.kill()
        down = self.quickly(lambda: self.tools.cached(cache), 3)  # the deadline is 5 s
        assert len(down.warnings()) == 1 and "Connection refused" in down.err, down.err
        self.use(Redis(port=redis.port))
        assert self.tools.cached(cache).count("PersistentCacheRedisMiss") == 1

    def redis_stalls(self):
        for greeting in (b"", b"$1000000\r\nabc"):
            silent = self.use(SilentServer(greeting))
            address, env = f"redis://{HOST}:{silent.port}", {"HLOKIT_STORE_TIMEOUT": "0.5"}
            stalled = self.quickly(lambda: self.tools.cached(address, env), 2.5)  # without the variable 3 s at least
            assert len(stalled.warnings()) == 1 and "timeout" in stalled.err, stalled.err
        other = self.use(SilentServer(b"HTTP/1.1 400 Bad Request\r\n\r\n"))
        assert len(self.tools.cached(f"redis://{HOST}:{other.port}").warnings()) == 1

    def redis_hostile(self):
        """Servers that send something for ever end with the deadline, and what they send takes little memory."""
        env = {"HLOKIT_STORE_TIMEOUT": "1"}
        for begin, more, pause in ((b"", b"x", 0.1), (b"$100\r\n", b"x", 0.1), (b"+", b"x" * 65536, 0),
                                   (b"$3000000000\r\n", b"x" * 1048576, 0), (b"*2147483647\r\n", b"$1\r\nx\r\n", 0),
                                   (b"*1\r\n" * 7, b"*1\r\n", 0), (b":", b"1" * 65536, 0)):
            server = self.use(SendingServer(begin, more, pause))
            address = f"redis://{HOST}:{server.port}"
            hostile = self.quickly(lambda: self.tools.cached(address, env), 3)
            assert len(hostile.warnings()) == 1 and hostile.count("PersistentCacheRedisError") == 1, (begin, hostile.err)
            assert hostile.peak_mib < 900, f"{hostile.peak_mib} MiB for {begin}"
            server.stop()

    def redis_cut(self):
        redis = self.use(Redis())
        self.tools.cached(f"redis://{HOST}:{redis.port}")
        for limit in (0, 3, 500):
            proxy = self.use(CuttingProxy(redis.port, limit))
            cut = self.tools.cached(f"redis://{HOST}:{proxy.port}")
            assert len(cut.warnings()) == 1 and cut.count("PersistentCacheRedisError") == 1, cut.err

    def redis_killed(self):
        for _ in range(20):
            redis = self.use(Redis())
            kill_while_in_use(self.tools, redis, f"redis://{HOST}:{redis.port}")

    def redis_killed_writers(self):
        """Writers killed at random points leave whole entries or none."""
        redis = self.use(Redis())
        cache = f"redis://{HOST}:{redis.port}"
        for k in range(30):
            redis.command("FLUSHALL")
            run = self.tools.start("ir-dump", *MODEL, f"--cache={cache}", "--emit=values")
            time.sleep(random.uniform(0, 0.1))
            run.send_signal(signal.SIGKILL)
            run.communicate()
            assert not self.tools.cached(cache).warnings()

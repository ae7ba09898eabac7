# SPDX-License-Identifier: Apache-2.0
"""The object stores of clouds, against a server that fails, and against s3rver and azurite."""
import os
import shutil
import subprocess
import time

from servers import HOST, Azurite, FailingServer, S3rver, SilentServer
from store_tools import MODEL, files, kill_while_in_use, race, round_trip
from suite import Suite


class ObjectStoreSuite(Suite):
    def __init__(self, tools, full, modules):
        super().__init__(tools, full)
        self.modules = modules  # the node_modules with the servers, or None

    def tests(self):
        tests = [self.transient_failures, self.lasting_failures, self.busy_server, self.endless_answers, self.signatures,
                 self.redirections, self.certificates, self.broken_uploads, self.stalls]
        return tests + ([self.s3_round_trip, self.azure_round_trip, self.s3_killed] if self.full and self.modules else [])

    # A server that fails

    def transient_failures(self):
        server = self.use(FailingServer())
        address, failures = "s3://team/module.hlo", []

        def fail(handler, method):
            if not failures:
                return False
            kind = failures.pop()
            if kind == "cut":
                body, headers = server.objects["/team/module.hlo"]
                handler.answer(200, body[:50], headers, length=len(body))
                handler.close_connection = True
            elif kind == "closed":
                handler.close_connection = True
            else:
                if method == "PUT":
                    handler.rfile.read(int(handler.headers["Content-Length"]))
                handler.answer(kind, b"<Error><Code>SlowDown</Code></Error>")
            return True

        server.fail = fail
        failures[:] = [503, 500, "closed"]
        self.tools.run("hlo-opt", self.tools.module, "-o", address, env=server.environment())
        assert not failures and len(server.requests) == 4, server.requests
        failures[:] = [429, "cut", "closed"]
        assert self.tools.run("hlo-opt", address, env=server.environment()).out == self.tools.printed
        assert not failures
        failures[:] = [503] * 100
        failed = self.tools.run("hlo-opt", address, env=server.environment(), code=2)
        assert "HTTP status 503, SlowDown" in failed.err and len(failures) == 96, failed.err
        failures[:] = ["cut"] * 100
        assert "hlo-opt: error: s3://team/module.hlo: " in self.tools.run("hlo-opt", address, env=server.environment(),
                                                                          code=2).err

    def busy_server(self):
        """A server that asks to be left alone for long is, and the message says what it asks."""
        server = self.use(FailingServer())
        env, seconds = server.environment(), ["99999999"]
        server.fail = lambda handler, method: handler.answer(503, b"", {"Retry-After": seconds[0]}) or True
        failed = self.quickly(lambda: self.tools.run("hlo-opt", "s3://team/x.hlo", env=env, code=2), 5)
        assert "asks to be tried again after 99999999 s, which is not waited for" in failed.err, failed.err
        before = len(server.requests)
        cached = self.quickly(lambda: self.tools.cached("s3://team/cache", env), 5)
        assert len(cached.warnings()) == 1 and "asks to be tried again" in cached.err, cached.err
        assert len(server.requests) - before <= 5, server.requests
        seconds[0] = "9" * 40
        assert "not waited for" in self.tools.run("hlo-opt", "s3://team/x.hlo", env=env, code=2).err
        seconds[0] = "1"
        said = self.tools.run("hlo-opt", "s3://team/x.hlo", env=env, code=2)
        assert said.err.count("waits 1 s, as the server asks") == 3, said.err

    def endless_answers(self):
        """An object and a list of keys without an end."""
        server = self.use(FailingServer())
        env = {**server.environment(), "HLOKIT_STORE_TIMEOUT": "1"}

        def trickle(handler, method):
            handler.send_response(200)
            handler.send_header("Content-Length", "1000000")
            handler.end_headers()
            try:
                while True:
                    handler.wfile.write(b"x")
                    time.sleep(0.1)
            except OSError:
                handler.close_connection = True
            return True

        server.fail = trickle
        slow = self.quickly(lambda: self.tools.cached("s3://team/cache", env), 4)
        assert len(slow.warnings()) == 1, slow.err
        pages = []

        def list_keys(handler, method):
            if "list-type=2" not in handler.path:
                return False
            pages.append(handler.path)
            handler.answer(200, f"<R><NextContinuationToken>t{len(pages)}</NextContinuationToken></R>".encode())
            return True

        server.fail = list_keys
        self.quickly(lambda: self.tools.cached("s3://team/other", env, explain=True), 6)
        assert pages

    def lasting_failures(self):
        server = self.use(FailingServer())
        address, env = "s3://team/module.hlo", server.environment()
        self.tools.run("hlo-opt", self.tools.module, "-o", address, env=env)
        body, headers = server.objects["/team/module.hlo"]
        server.objects["/team/module.hlo"] = (body.replace(b"add", b"mul"), headers)
        damaged = self.tools.run("hlo-opt", address, env=env, code=2)
        assert "damaged" in damaged.err, damaged.err
        server.objects["/team/module.hlo"] = (body, {})  # of another program
        assert self.tools.run("hlo-opt", address, env=env).out == self.tools.printed
        echo = b"<Error><Code>AccessDenied</Code><Message>very-secret session-secret\nsecond line</Message></Error>"
        server.fail = lambda handler, method: handler.answer(403, echo) or True
        before = len(server.requests)
        denied = self.tools.run("hlo-opt", address, env=env, code=2)
        assert "access denied: HTTP status 403, AccessDenied: ... ..." in denied.err, denied.err
        assert len(server.requests) == before + 1  # not tried again
        assert len(self.tools.cached("s3://team/cache", env).warnings()) == 1
        server.fail = lambda handler, method: handler.answer(301, b"", {"x-amz-bucket-region": "eu-north-1"}) or True
        assert "set AWS_REGION" in self.tools.run("hlo-opt", address, env=env, code=2).err
        azure = {"AZURE_STORAGE_ACCOUNT": "a", "AZURE_STORAGE_SAS_TOKEN": "sv=1&sig%3Dsecret",
                 "AZURE_STORAGE_SERVICE_ENDPOINT": f"http://{HOST}:{server.port}"}
        server.fail = lambda handler, method: handler.answer(
            400, f"<Error><Code>Bad</Code><Message>{handler.path.replace('&', '&amp;')}</Message></Error>".encode()) or True
        echoed = self.tools.run("hlo-opt", "az://team/x", env=azure, code=2)
        assert "HTTP status 400, Bad: /team/x?..." in echoed.err, echoed.err

    def signatures(self):
        server = self.use(FailingServer())
        env = server.environment()
        odd = "s3://team/a/step 1+ü#?&=%41~*'.hlo"
        self.tools.run("hlo-opt", self.tools.module, "-o", odd, env=env)
        assert self.tools.run("hlo-opt", odd, env=env).out == self.tools.printed
        wrong = self.tools.run("hlo-opt", odd, env={**env, "AWS_SECRET_ACCESS_KEY": "other"}, code=2)
        assert "SignatureDoesNotMatch" in wrong.err, wrong.err
        # Entries of the same graph under several settings, listed page by page.
        for pipeline in ("cse", "dce", "cse,dce", "dce,cse", "simplify"):
            self.tools.run("ir-dump", *MODEL, "--cache=s3://team/c", f"--pipeline={pipeline}", "--emit=values", env=env)
        explained = self.tools.run("ir-dump", *MODEL, "--cache=s3://team/c", "--explain-recompiles", "--emit=values", env=env)
        assert "pipeline is `default`" in explained.out + explained.err
        assert sum("list-type=2" in path for _, path in server.requests) >= 3

    def redirections(self):
        server, other = self.use(FailingServer()), self.use(FailingServer())
        address, env = "s3://team/module.hlo", server.environment()
        self.tools.run("hlo-opt", self.tools.module, "-o", address, env=env)
        other.objects.update(server.objects)
        for status in (301, 302, 303, 307, 308):
            server.fail = lambda handler, method: handler.answer(
                status, b"", {"Location": f"http://{HOST}:{other.port}{handler.path}"}) or True
            assert str(status) in self.tools.run("hlo-opt", address, env=env, code=2).err
        assert not other.requests, other.requests

    def certificates(self):
        if not shutil.which("openssl"):
            return
        key, certificate = (os.path.join(self.tools.scratch, name) for name in ("key.pem", "certificate.pem"))
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days",
                        "2", "-subj", "/CN=test", "-addext", f"subjectAltName=IP:{HOST}", "-keyout", key, "-out",
                        certificate], check=True, capture_output=True)
        server = self.use(FailingServer((certificate, key)))
        env = server.environment()
        rejected = self.tools.run("hlo-opt", self.tools.module, "-o", "s3://team/x.hlo", env=env, code=1)
        assert "certificate" in rejected.err and not server.requests, rejected.err
        env["AWS_CA_BUNDLE"] = certificate
        self.tools.run("hlo-opt", self.tools.module, "-o", "s3://team/x.hlo", env=env)
        assert self.tools.run("hlo-opt", "s3://team/x.hlo", env=env).out == self.tools.printed

    def broken_uploads(self):
        server = self.use(FailingServer())
        address, env = "s3://team/module.hlo", server.environment()
        server.objects["/team/module.hlo"] = (b"old", {})

        def fail(handler, method):
            handler.rfile.read(10)
            handler.close_connection = True
            return True

        server.fail = fail
        failed = self.tools.run("hlo-opt", self.tools.module, "-o", address, env=env, code=1)
        assert "s3://team/module.hlo" in failed.err and server.objects["/team/module.hlo"][0] == b"old"
        # A module that is rejected is not uploaded.
        server.fail = lambda handler, method: False
        before = len(server.requests)
        self.tools.run("hlo-opt", self.tools.file("bad.hlo", "HloModule"), "-o", address, env=env, code=1)
        assert len(server.requests) == before

    def stalls(self):
        silent = self.use(SilentServer())
        env = {"AWS_ACCESS_KEY_ID": "k", "AWS_SECRET_ACCESS_KEY": "very-secret", "HLOKIT_STORE_TIMEOUT": "0.6",
               "AWS_ENDPOINT_URL": f"http://{HOST}:{silent.port}"}
        stalled = self.quickly(lambda: self.tools.cached("s3://team/cache", env), 2.5)  # without the variable 3 s at least
        assert len(stalled.warnings()) == 1

    # Real servers of the clouds' interfaces

    def s3_round_trip(self):
        server = self.use(S3rver(self.modules))
        for scheme, counter in (("s3", "S3"), ("gs", "Gcs")):
            round_trip(self.tools, f"{scheme}://team/{scheme}cache", counter, server.environment())
            files(self.tools, f"{scheme}://team/{scheme}", server.environment())
        race(self.tools, "s3://team/race", server.environment())
        wrong = {**server.environment(), "AWS_ACCESS_KEY_ID": "other", "AWS_SECRET_ACCESS_KEY": "very-secret"}
        denied = self.tools.run("hlo-opt", "s3://team/s3/results.npz", env=wrong, code=2)
        assert "access denied: HTTP status 403, InvalidAccessKeyId" in denied.err, denied.err
        assert len(self.tools.cached("s3://team/s3cache", wrong).warnings()) == 1
        # Credentials of a profile.
        os.makedirs(os.path.join(self.tools.scratch, ".aws"), exist_ok=True)
        self.tools.file(".aws/credentials", "[ci]\naws_access_key_id=S3RVER\naws_secret_access_key=S3RVER\n")
        self.tools.file(".aws/config", f"[profile ci]\nendpoint_url = http://{HOST}:{server.port}\n")
        assert self.tools.cached("s3://team/s3cache", {"AWS_PROFILE": "ci"}).count("PersistentCacheS3Hit") == 1
        no_bucket = self.tools.run("hlo-opt", self.tools.module, "-o", "s3://nobody/x.hlo", env=server.environment(), code=1)
        assert "NoSuchBucket" in no_bucket.err, no_bucket.err

    def azure_round_trip(self):
        server = self.use(Azurite(self.modules))
        round_trip(self.tools, "az://team/cache", "Azure", server.environment())
        files(self.tools, "az://team/key", server.environment())
        token = {"AZURE_STORAGE_SAS_TOKEN": server.sas_token(), "AZURE_STORAGE_SERVICE_ENDPOINT": server.endpoint()}
        files(self.tools, "az://team/sas", token)
        race(self.tools, "az://team/race", token)
        wrong = server.environment("very+secret/very+secret/aa==")
        denied = self.tools.run("hlo-opt", "az://team/key/results.npz", env=wrong, code=2)
        assert "access denied: HTTP status 403" in denied.err and "very+secret" not in denied.err, denied.err
        assert len(self.tools.cached("az://team/cache", wrong).warnings()) == 1
        expired = {**token, "AZURE_STORAGE_SAS_TOKEN": token["AZURE_STORAGE_SAS_TOKEN"].replace("2099", "2021")}
        assert "HTTP status 403" in self.tools.run("hlo-opt", "az://team/key/results.npz", env=expired, code=2).err

    def s3_killed(self):
        for _ in range(3):
            server = self.use(S3rver(self.modules))
            kill_while_in_use(self.tools, server, "s3://team/cache", server.environment())

# SPDX-License-Identifier: Apache-2.0
"""Servers on the loopback interface for the tests of remote stores: real ones, and one that fails as told."""
import base64
import hashlib
import hmac
import http.client
import http.server
import os
import shutil
import signal
import socket
import ssl
import subprocess
import tempfile
import threading
import time
import urllib.parse
from email.utils import formatdate

HOST = "127.0.0.1"


def free_port():
    with socket.socket() as s:
        s.bind((HOST, 0))
        return s.getsockname()[1]


def peak_mib(pid):
    """The most memory that the process had; 0 when it has ended."""
    try:
        with open(f"/proc/{pid}/status") as status:
            return next((int(line.split()[1]) >> 10 for line in status if line.startswith("VmHWM:")), 0)
    except OSError:
        return 0


class Process:
    """A server program, stopped at the end."""

    def __init__(self, arguments, port, folder):
        self.port = port
        self.folder = folder
        self.log = open(os.path.join(folder, "log"), "wb")
        self.process = subprocess.Popen(arguments, stdout=self.log, stderr=self.log, cwd=folder)
        deadline = time.monotonic() + 60
        while True:
            try:
                socket.create_connection((HOST, port), 1).close()
                return
            except OSError:
                if self.process.poll() is not None or time.monotonic() > deadline:
                    with open(os.path.join(folder, "log"), errors="replace") as log:
                        text = log.read()[-2000:]
                    self.stop()
                    raise RuntimeError(f"{arguments[0]} does not start: {text}") from None
                time.sleep(0.02)

    def kill(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGKILL)
        self.process.wait()
        self.log.close()

    def stop(self):
        self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)


class Redis(Process):
    def __init__(self, password=None, port=None):
        port = port or free_port()
        more = ["--requirepass", password] if password else []
        super().__init__(["redis-server", "--port", str(port), "--bind", HOST, "--save", "", "--appendonly", "no", *more],
                         port, tempfile.mkdtemp(prefix="hlokit-redis-"))

    def command(self, *words):
        """Returns the raw reply."""
        with socket.create_connection((HOST, self.port), 5) as s:
            data = b"*%d\r\n" % len(words)
            for word in words:
                word = word if isinstance(word, bytes) else str(word).encode()
                data += b"$%d\r\n%s\r\n" % (len(word), word)
            s.sendall(data)
            s.shutdown(socket.SHUT_WR)
            reply = b""
            while piece := s.recv(1 << 16):
                reply += piece
            return reply

    def keys(self):
        return [line for line in self.command("KEYS", "*").split(b"\r\n") if line and line[:1] not in (b"*", b"$")]


class S3rver(Process):
    ENVIRONMENT = {"AWS_ACCESS_KEY_ID": "S3RVER", "AWS_SECRET_ACCESS_KEY": "S3RVER", "GS_ACCESS_KEY_ID": "S3RVER",
                   "GS_SECRET_ACCESS_KEY": "S3RVER"}

    def __init__(self, modules, port=None, folder=None):
        port = port or free_port()
        folder = folder or tempfile.mkdtemp(prefix="hlokit-s3rver-")
        os.makedirs(os.path.join(folder, "data"), exist_ok=True)
        super().__init__(["node", os.path.join(modules, "s3rver/bin/s3rver.js"), "-d", os.path.join(folder, "data"),
                          "-a", HOST, "-p", str(port), "--configure-bucket", "team"], port, folder)

    def environment(self):
        return {**self.ENVIRONMENT, "AWS_ENDPOINT_URL_S3": f"http://{HOST}:{self.port}",
                "STORAGE_EMULATOR_HOST": f"{HOST}:{self.port}"}


class Azurite(Process):
    ACCOUNT = "teamaccount"

    def __init__(self, modules):
        # A key of this run; the program gets it by its environment.
        self.key = base64.b64encode(os.urandom(64)).decode()
        os.environ["AZURITE_ACCOUNTS"] = f"{self.ACCOUNT}:{self.key}"
        port = free_port()
        folder = tempfile.mkdtemp(prefix="hlokit-azurite-")
        super().__init__(["node", os.path.join(modules, "azurite/dist/src/blob/main.js"), "--blobHost", HOST, "--blobPort",
                          str(port), "-l", folder, "--disableTelemetry", "--silent"], port, folder)
        del os.environ["AZURITE_ACCOUNTS"]
        self.create_container("team")

    def endpoint(self):
        return f"http://{HOST}:{self.port}/{self.ACCOUNT}"

    def environment(self, key=None):
        return {"AZURE_STORAGE_CONNECTION_STRING": f"DefaultEndpointsProtocol=http;AccountName={self.ACCOUNT};"
                                                   f"AccountKey={key or self.key};BlobEndpoint={self.endpoint()};"}

    def sign(self, text):
        return base64.b64encode(hmac.new(base64.b64decode(self.key), text.encode(), hashlib.sha256).digest()).decode()

    def sas_token(self):
        start, end = "2020-01-01T00:00:00Z", "2099-01-01T00:00:00Z"
        fields = {"sv": "2020-10-02", "ss": "b", "srt": "sco", "sp": "rwdlac", "st": start, "se": end, "spr": "https,http"}
        text = "\n".join([self.ACCOUNT, fields["sp"], fields["ss"], fields["srt"], start, end, "", fields["spr"],
                          fields["sv"], ""])
        return urllib.parse.urlencode({**fields, "sig": self.sign(text)})

    def create_container(self, name):
        date, version = formatdate(usegmt=True), "2020-10-02"
        path = f"/{self.ACCOUNT}/{name}"
        text = "PUT" + "\n" * 12 + f"x-ms-date:{date}\nx-ms-version:{version}\n/{self.ACCOUNT}{path}\nrestype:container"
        connection = http.client.HTTPConnection(HOST, self.port, timeout=10)
        connection.request("PUT", path + "?restype=container", headers={
            "x-ms-date": date, "x-ms-version": version, "Content-Length": "0",
            "Authorization": f"SharedKey {self.ACCOUNT}:{self.sign(text)}"})
        status = connection.getresponse().status
        connection.close()
        if status != 201:
            raise RuntimeError(f"azurite: container: {status}")


def aws_signature(method, target, headers, secret):
    """Returns the Signature Version 4 that a request should have, from what arrived: written apart from the tools' own,
    since s3rver accepts any."""
    scope, signed = [headers["Authorization"].split(name + "=")[1].split(",")[0] for name in ("Credential", "SignedHeaders")]
    _, day, region, service, last = scope.split("/")
    path, _, query = target.partition("?")
    text = "\n".join([method, path, "&".join(sorted(query.split("&"))),
                      *[f"{name}:{headers[name].strip()}" for name in signed.split(";")], "", signed,
                      headers["x-amz-content-sha256"]])
    text = "\n".join(["AWS4-HMAC-SHA256", headers["x-amz-date"], f"{day}/{region}/{service}/{last}",
                      hashlib.sha256(text.encode()).hexdigest()])
    key = ("AWS4" + secret).encode()
    for part in (day, region, service, last, text):
        key = hmac.new(key, part.encode(), hashlib.sha256).digest()
    return key.hex()


class FailingServer:
    """Keeps objects in memory, checks signatures, lists two keys a page. `fail(handler, method)` may answer a request in its
    place and return True."""

    SECRET = "very-secret"

    def __init__(self, certificate=None):
        self.scheme = "https" if certificate else "http"
        self.objects, self.requests, self.fail = {}, [], lambda handler, method: False
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *arguments):
                pass

            def handle_one(self, method):
                outer.requests.append((method, self.path))
                if outer.fail(self, method):
                    return
                body = self.rfile.read(int(self.headers["Content-Length"] or 0))
                name, _, query = self.path.partition("?")
                signed = self.headers["Authorization"].split("SignedHeaders=")[1].split(",")[0].split(";")
                required = {"host", *(key.lower() for key in self.headers if key.lower().startswith("x-amz-"))}
                if (not self.headers["Authorization"].endswith(
                        "=" + aws_signature(method, self.path, self.headers, outer.SECRET)) or not required <= set(signed) or
                        self.headers["x-amz-content-sha256"] != hashlib.sha256(body).hexdigest()):
                    self.answer(403, b"<Error><Code>SignatureDoesNotMatch</Code></Error>")
                elif "list-type=2" in query:
                    wanted = dict(urllib.parse.parse_qsl(query))
                    keys = sorted(urllib.parse.unquote(key.split("/", 2)[2]) for key in outer.objects)
                    keys = [key for key in keys if key.startswith(wanted["prefix"])
                            and key > wanted.get("continuation-token", "")]
                    more = f"<NextContinuationToken>{keys[1]}</NextContinuationToken>" if len(keys) > 2 else ""
                    self.answer(200, ("<List>" + "".join(f"<Contents><Key>{key}</Key></Contents>" for key in keys[:2]) + more +
                                      "</List>").encode())
                elif method == "PUT":
                    outer.objects[name] = (body, {k: v for k, v in self.headers.items() if "-meta-" in k.lower()})
                    self.answer(200)
                elif name not in outer.objects:
                    self.answer(404, b"<Error><Code>NoSuchKey</Code></Error>")
                elif method == "DELETE":
                    del outer.objects[name]
                    self.answer(204)
                else:
                    self.answer(200, *outer.objects[name])

            def answer(self, status, body=b"", headers=None, length=None):
                self.send_response(status)
                for key, value in (headers or {}).items():
                    self.send_header(key, value)
                self.send_header("Content-Length", str(len(body) if length is None else length))
                self.end_headers()
                self.wfile.write(body)

            do_GET = lambda self: self.handle_one("GET")
            do_PUT = lambda self: self.handle_one("PUT")
            do_DELETE = lambda self: self.handle_one("DELETE")

        class Server(http.server.ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, request, client_address):
                pass

        self.server = Server((HOST, 0), Handler)
        self.port = self.server.server_address[1]
        if certificate:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(*certificate)
            self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()

    def environment(self):
        return {"AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": self.SECRET, "AWS_SESSION_TOKEN": "session-secret",
                "AWS_ENDPOINT_URL": f"{self.scheme}://{HOST}:{self.port}"}

    def stop(self):
        self.server.shutdown()
        self.server.server_close()


class SilentServer:
    """Accepts connections, sends these bytes, and nothing more."""

    def __init__(self, greeting=b""):
        self.socket = socket.socket()
        self.socket.bind((HOST, 0))
        self.socket.listen(64)
        self.port = self.socket.getsockname()[1]
        self.greeting, self.connections = greeting, []
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                connection, _ = self.socket.accept()
                connection.sendall(self.greeting)
                self.connections.append(connection)
            except OSError:
                return

    def stop(self):
        self.socket.close()
        for connection in self.connections:
            connection.close()


class SendingServer(SilentServer):
    """Sends some bytes to each connection, and then others without an end."""

    def __init__(self, begin, more, pause):
        self.more, self.pause = more, pause
        super().__init__(begin)

    def accept(self):
        while True:
            try:
                connection, _ = self.socket.accept()
            except OSError:
                return
            self.connections.append(connection)
            threading.Thread(target=self.send, args=(connection,), daemon=True).start()

    def send(self, connection):
        try:
            connection.recv(65536)  # a command
            connection.sendall(self.greeting)
            while True:
                connection.sendall(self.more)
                time.sleep(self.pause)
        except OSError:
            return


class AnsweringServer(SilentServer):
    """Answers each command of Redis as `answers` says, by its name."""

    def __init__(self, answers):
        self.answers, self.commands = answers, []
        super().__init__()

    def accept(self):
        while True:
            try:
                connection, _ = self.socket.accept()
            except OSError:
                return
            self.connections.append(connection)
            threading.Thread(target=self.serve, args=(connection,), daemon=True).start()

    def serve(self, connection):
        stream = connection.makefile("rb")
        try:
            while line := stream.readline():
                words = []
                for _ in range(int(line[1:])):
                    words.append(stream.read(int(stream.readline()[1:]) + 2)[:-2])
                self.commands.append(words[0])
                connection.sendall(self.answers[words[0]])
        except OSError:
            return


class CuttingProxy:
    """Passes bytes to a port, and cuts each connection after `limit` bytes of answers."""

    def __init__(self, port, limit):
        self.target, self.limit = port, limit
        self.socket = socket.socket()
        self.socket.bind((HOST, 0))
        self.socket.listen(64)
        self.port = self.socket.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                client, _ = self.socket.accept()
            except OSError:
                return
            server = socket.create_connection((HOST, self.target))
            threading.Thread(target=self.copy, args=(client, server, None), daemon=True).start()
            threading.Thread(target=self.copy, args=(server, client, self.limit), daemon=True).start()

    @staticmethod
    def copy(source, target, limit):
        try:
            while limit is None or limit > 0:
                piece = source.recv(1 << 16 if limit is None else min(limit, 1 << 16))
                if not piece:
                    break
                target.sendall(piece)
                limit = None if limit is None else limit - len(piece)
        except OSError:
            pass
        for end in (source, target):
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def stop(self):
        self.socket.close()

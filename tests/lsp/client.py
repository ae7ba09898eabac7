# SPDX-License-Identifier: Apache-2.0
"""A client of the Language Server Protocol for tests: one server process, requests that wait for their answers, and
what the server sends by itself."""

import json
import os
import queue
import subprocess
import threading


class Failed(Exception):
    """The server answered with an error."""

    def __init__(self, error):
        super().__init__(f"{error['code']}: {error['message']}")
        self.code = error["code"]
        self.message = error["message"]


class Ended(Exception):
    """The server has ended."""


class Client:
    def __init__(self, server, *flags, capabilities=None, options=None, initialize=True, timeout=60, environment=None):
        self.timeout = timeout
        self.process = subprocess.Popen([server, "--stdio", *flags], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        env={**os.environ, **(environment or {})})
        self.messages = queue.Queue()
        self.answers = {}
        self.notifications = []  # and requests of the server
        self.versions = {}
        self.next_id = 0
        self.thread = threading.Thread(target=self._read, daemon=True)
        self.thread.start()
        if initialize:
            self.capabilities = self.request("initialize", {
                "processId": os.getpid(), "rootUri": None, "capabilities": capabilities or {},
                "initializationOptions": options or {}})["capabilities"]
            self.notify("initialized", {})

    def _read(self):
        out = self.process.stdout
        while True:
            length = None
            while line := out.readline():
                line = line.strip()
                if not line:
                    break
                name, _, value = line.partition(b":")
                if name.lower() == b"content-length":
                    length = int(value)
            if length is None:
                self.messages.put(None)
                return
            self.messages.put(json.loads(out.read(length)))

    def send_bytes(self, data):
        try:
            self.process.stdin.write(data)
            self.process.stdin.flush()
        except BrokenPipeError:
            raise Ended from None

    def send(self, message):
        body = json.dumps(message).encode()
        self.send_bytes(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))

    def notify(self, method, params):
        self.send({"jsonrpc": "2.0", "method": method, "params": params})

    def start(self, method, params):
        """Sends a request; returns its id, for `wait`."""
        self.next_id += 1
        self.send({"jsonrpc": "2.0", "id": self.next_id, "method": method, "params": params})
        return self.next_id

    def take(self):
        """Takes in the next message."""
        message = self.messages.get(timeout=self.timeout)
        if message is None:
            self.messages.put(None)
            raise Ended
        if "method" in message:
            self.notifications.append(message)
            if "id" in message:
                self.send({"jsonrpc": "2.0", "id": message["id"], "result": {"applied": True, "success": True}})
        else:
            self.answers[message["id"]] = message
        return message

    def wait(self, id):
        while id not in self.answers:
            self.take()
        answer = self.answers.pop(id)
        if "error" in answer:
            raise Failed(answer["error"])
        return answer["result"]

    def request(self, method, params):
        return self.wait(self.start(method, params))

    def open(self, uri, text, language="hlo"):
        self.versions[uri] = 1
        self.notify("textDocument/didOpen", {
            "textDocument": {"uri": uri, "languageId": language, "version": 1, "text": text}})

    def change(self, uri, *changes):
        self.versions[uri] += 1
        self.notify("textDocument/didChange", {
            "textDocument": {"uri": uri, "version": self.versions[uri]}, "contentChanges": list(changes)})

    def close(self, uri):
        self.notify("textDocument/didClose", {"textDocument": {"uri": uri}})

    def at(self, method, uri, line, character, **more):
        """A request about a position."""
        return self.request(method, {"textDocument": {"uri": uri},
                                     "position": {"line": line, "character": character}, **more})

    def about(self, method, uri, **more):
        """A request about a document."""
        return self.request(method, {"textDocument": {"uri": uri}, **more})

    def published(self, uri, version=None):
        """Waits for diagnostics of the version, by default the current one."""
        version = self.versions[uri] if version is None else version
        while True:
            for message in self.notifications:
                params = message.get("params", {})
                if message["method"] == "textDocument/publishDiagnostics" and params["uri"] == uri \
                        and params.get("version") == version:
                    return params["diagnostics"]
            self.take()

    def memory(self):
        """Resident bytes."""
        with open(f"/proc/{self.process.pid}/status") as file:
            for line in file:
                if line.startswith("VmRSS:"):
                    return int(line.split()[1]) * 1024
        return 0

    def processor_seconds(self):
        with open(f"/proc/{self.process.pid}/stat") as file:
            fields = file.read().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def stop(self):
        """Ends the server as the protocol says; returns its exit code."""
        try:
            self.request("shutdown", None)
            self.notify("exit", None)
        except Ended:
            pass
        code = self.process.wait(timeout=self.timeout)
        try:
            self.process.stdin.close()
        except BrokenPipeError:
            pass
        return code

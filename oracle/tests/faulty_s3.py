"""A proxy in front of an S3 server that misbehaves as busy networks do, by a seeded dice."""

import collections
import contextlib
import http.client
import http.server
import random
import threading
import time
import urllib.parse

SLOW_DOWN = b'<?xml version="1.0" encoding="UTF-8"?><Error><Code>SlowDown</Code><Message>Please reduce your request rate.</Message></Error>'
INTERNAL = b'<?xml version="1.0" encoding="UTF-8"?><Error><Code>InternalError</Code><Message>Try again.</Message></Error>'
HOP_BY_HOP = {"connection", "keep-alive", "transfer-encoding", "content-length"}


class Faults:
    """Shares of requests that go wrong, and what came by."""

    def __init__(self, seed=0, throttled=0.0, lost_answers=0.0, cut_bodies=0.0, latency_s=0.0):
        self.throttled, self.lost_answers, self.cut_bodies, self.latency_s = throttled, lost_answers, cut_bodies, latency_s
        self.dice, self.lock = random.Random(seed), threading.Lock()
        self.requests, self.faults = collections.Counter(), collections.Counter()
        self.in_flight, self.most_in_flight = 0, 0

    def hits(self, kind, share):
        with self.lock:
            hit = self.dice.random() < share
            self.faults[kind] += hit
            return hit

    @contextlib.contextmanager
    def request(self, method):
        with self.lock:
            self.requests[method] += 1
            self.in_flight += 1
            self.most_in_flight = max(self.most_in_flight, self.in_flight)
        try:
            yield
        finally:
            with self.lock:
                self.in_flight -= 1


@contextlib.contextmanager
def proxy(endpoint, faults):
    """The proxy's own endpoint, while it is up."""
    upstream = urllib.parse.urlsplit(endpoint)

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def forward(self):
            with faults.request(self.command):
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                time.sleep(faults.latency_s)
                if faults.hits("throttled", faults.throttled):
                    return self.answer(503, [], SLOW_DOWN)
                connection = http.client.HTTPConnection(upstream.hostname, upstream.port, timeout=60)
                try:
                    connection.putrequest(self.command, self.path, skip_host=True, skip_accept_encoding=True)
                    for name, value in self.headers.items():
                        connection.putheader(name, value)
                    connection.endheaders(body)
                    response = connection.getresponse()
                    got, headers = response.read(), response.getheaders()
                finally:
                    connection.close()
                writes = self.command in ("PUT", "POST", "DELETE")
                if writes and response.status < 300 and faults.hits("lost", faults.lost_answers):
                    return self.answer(500, [], INTERNAL)
                if self.command == "GET" and len(got) > 1 and faults.hits("cut", faults.cut_bodies):
                    self.answer(response.status, headers, got, sent=len(got) // 2)
                    self.close_connection = True
                    return None
                return self.answer(response.status, headers, got)

        def answer(self, status, headers, body, sent=None):
            self.send_response_only(status)
            for name, value in headers:
                if name.lower() not in HOP_BY_HOP:
                    self.send_header(name, value)
            length = len(body)
            if self.command == "HEAD":
                length = next((value for name, value in headers if name.lower() == "content-length"), 0)
            self.send_header("Content-Length", str(length))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body[:sent])

        do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = forward

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()

"""A hub answers, refuses, does not exist, or must not be contacted offline."""

from __future__ import annotations

import http.server
import threading

import pytest

from geosd.prerequisites.machine import hub_answers


@pytest.fixture
def hub():
    """A server that says 405 to HEAD, which is an answer, and counts."""

    class Handler(http.server.BaseHTTPRequestHandler):
        requests = 0

        def do_HEAD(self):
            Handler.requests += 1
            self.send_error(405)

        def log_message(self, *_):
            pass

    with http.server.HTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        server.url = f"http://127.0.0.1:{server.server_port}"
        yield server
        server.shutdown()


def test_any_answer_counts(hub):
    assert hub_answers(hub.url, offline=False)
    assert hub.RequestHandlerClass.requests == 1


def test_nothing_is_requested_offline(hub):
    assert not hub_answers(hub.url, offline=True)
    assert hub.RequestHandlerClass.requests == 0


def test_a_closed_port_gives_no_answer(hub):
    hub.server_close()
    assert not hub_answers(hub.url, offline=False, timeout_s=1)

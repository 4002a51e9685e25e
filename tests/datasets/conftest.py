"""A web server of this machine in place of a mirror."""

import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def served(tmp_path: Path) -> Iterator[list[str]]:
    """The address of `tmp_path`/site as a list of mirrors."""
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=tmp_path / "site")) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield [f"http://127.0.0.1:{server.server_port}/"]
        server.shutdown()
        thread.join()

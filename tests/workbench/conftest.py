"""A real server on the loopback address, a client for it, and small tables."""

import threading
import time
from contextlib import contextmanager

import httpx
import numpy as np
import pytest

pytest.importorskip("fastapi")

from linkwise.datasets import load_bundled
from linkwise.workbench.app import Server
from linkwise.workbench.classes import ClassDesk
from linkwise.workbench.desk import Desk
from linkwise.workbench.table import read_table
from tests.first_clusterings import all_candidates, few_for_sessions, looked_at_anew, shared_first_clusterings

__all__ = [
    "Client", "all_candidates", "few_for_sessions", "looked_at_anew", "serving", "shared_first_clusterings",
    "write_iris",
]  # fmt: skip


def write_iris(path):
    """150 rows with an id, four numbers and a class; the first class has HTML in its name."""
    X, y = load_bundled("iris")
    y = np.unique(y, return_inverse=True)[1]
    names = np.array(["<b>set</b>", "versi", "virgi"])[y]
    lines = [
        f"s{k},{','.join(map(str, row))},{name}" for k, (row, name) in enumerate(zip(X, names, strict=True))
    ]
    path.write_text("\n".join(["id,a,b,c,d,class", *lines]) + "\n", encoding="utf-8")
    return y


class Client(httpx.Client):
    """Requests of a page that has the token."""

    def __init__(self, server, **headers):
        headers = {"authorization": f"Bearer {server.token}", **headers}
        super().__init__(base_url=f"http://127.0.0.1:{server.port}", headers=headers, timeout=60)

    def json_of(self, path, **body):
        """What a request gives: GET without a body, else POST."""
        reply = (
            self.post(path, json=body)
            if body or path.endswith(("undo", "run!", "accept"))
            else self.get(path)
        )
        assert reply.status_code == 200, reply.text
        return reply.json()

    def settled(self):
        """The state once the model has followed all answers."""
        for _ in range(1200):
            state = self.json_of("/api/state")
            if not state["refreshing"] and state["model_version"]:
                return state
            time.sleep(0.05)
        raise AssertionError(f"the model does not come to rest: {state}")

    def question(self, source=None):
        """The next question, once there is one."""
        for _ in range(600):
            found = self.get("/api/question", params={} if source is None else {"source": source}).json()
            if "looked for" not in found.get("reason", ""):
                return found
            time.sleep(0.05)
        raise AssertionError("no question")


@contextmanager
def serving(path, session, *, links=None, host="127.0.0.1", **columns):
    """A server about a file in a thread, until the end of the block."""
    table = read_table(path, session=session, **columns)
    desk = Desk.open(table, session, links=links)
    classes = ClassDesk(table, session) if columns.get("label_column") else None
    server = Server(desk, classes, host=host)
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        while not server.uvicorn.started:
            time.sleep(0.01)
        yield server
    finally:
        server.stop()
        thread.join()
        desk.close()


@pytest.fixture(scope="session")
def iris(tmp_path_factory):
    """Path and classes of the table of irises."""
    path = tmp_path_factory.mktemp("data") / "iris.csv"
    return path, write_iris(path)


@pytest.fixture
def server(iris, tmp_path):
    """A server about the irises with a session of its own."""
    with serving(iris[0], tmp_path / "session", id_column="id", label_column="class") as server:
        yield server


@pytest.fixture
def client(server):
    """A client of that server."""
    with Client(server) as client:
        yield client

"""The routes of the page: what it can ask for, and how requests are checked."""

from __future__ import annotations

import secrets
import socket
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
from fastapi import FastAPI, HTTPException, Query, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import FileResponse, JSONResponse, Response
from fastapi.staticfiles import StaticFiles
from pydantic import BaseModel, ConfigDict, Field
from starlette.exceptions import HTTPException as StarletteException

from linkwise._tables import first_line
from linkwise.exceptions import InfeasibleConstraints
from linkwise.workbench import exports
from linkwise.workbench.access import Access, served_hosts
from linkwise.workbench.classes import ClassDesk
from linkwise.workbench.desk import Conflict, Desk, Missing
from linkwise.workbench.exports import answers_of_groups
from linkwise.workbench.pictures import Pictures
from linkwise.workbench.table import image_type

if TYPE_CHECKING:
    import uvicorn

STATIC = Path(__file__).parent / "static"
_MOST_IMAGE = 50_000_000
_N_CLUSTERS_SHOWN = 5

Name = Annotated[str, Field(max_length=80, pattern=r"^[^\x00-\x1f\x7f]*$")]
Row = Annotated[int, Field(ge=0)]


class _Body(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class AnswerBody(_Body):
    """An answer about two rows."""

    i: Row
    j: Row
    says: Literal["same", "different", "unsure"]
    certainty: Annotated[float, Field(gt=0.5, le=1.0)] | None = None
    source: Name | None = None


class UndoBody(_Body):
    """Whose answer is taken back; without a name the last of all."""

    source: Name | None = None


class RetractBody(_Body):
    """The place of an answer, and its rows if they are to be checked."""

    answer: Row
    i: Row | None = None
    j: Row | None = None
    source: Name | None = None


class GroupsBody(_Body):
    """Rows inside one or two lassos."""

    relation: Literal["together", "apart"]
    a: Annotated[list[Row], Field(min_length=1)]
    b: list[Row] = []
    source: Name | None = None


class BeliefBody(_Body):
    """What is believed about one class (i == j) or two."""

    i: Row
    j: Row
    belief: Literal["split", "keep", "merge", "apart", "unsure"]


class EmptyBody(_Body):
    """A request that says no more than its address."""


def make_app(desk: Desk, pictures: Pictures, classes: ClassDesk | None = None) -> FastAPI:
    """Make the application; nothing of it is to be served without ``Access`` around it."""
    app = FastAPI(docs_url=None, redoc_url=None, openapi_url=None, title="linkwise")
    _add_errors(app)

    @app.get("/api/state")
    def state() -> Any:
        return desk.state()

    @app.get("/api/question")
    def question(source: Annotated[Name | None, Query()] = None) -> Any:
        return desk.question(source or None)

    def next_one(source: str | None, **more: Any) -> dict[str, Any]:
        question = desk.question(source)
        return {"state": desk.state(), "question": question, **more}

    @app.post("/api/answer")
    def answer(body: AnswerBody) -> Any:
        _check_rows(desk, body.i, body.j)
        source = body.source or None
        kept = desk.tell(body.i, body.j, body.says, body.certainty, source)
        return next_one(source, kept=kept)

    @app.post("/api/undo")
    def undo(body: UndoBody) -> Any:
        desk.undo(body.source or None)
        return next_one(body.source or None)

    @app.post("/api/retract")
    def retract(body: RetractBody) -> Any:
        pair = None if body.i is None or body.j is None else (body.i, body.j)
        desk.retract(body.answer, pair, body.source or None)
        return next_one(body.source or None)

    @app.get("/api/answers")
    def answers(after: Annotated[int, Query(ge=0)] = 0) -> Any:
        return desk.answer_lines()[after:]

    @app.get("/api/doubts")
    def doubts() -> Any:
        found = []
        for line in desk.doubted_lines():
            records, differs, _ = desk.table.pair(line["i"], line["j"])
            found.append({**line, "records": records, "differs": differs})
        return found

    @app.get("/api/contradictions")
    def contradictions() -> Any:
        return desk.contradiction_lines()

    @app.post("/api/groups")
    def groups(body: GroupsBody) -> Any:
        _check_rows(desk, *body.a, *body.b)
        pairs, says = answers_of_groups(desk.table.X, body.relation, body.a, body.b)
        added = desk.tell_all(pairs, says, body.source or None)
        ids = [[desk.table.name_of(i), desk.table.name_of(j)] for i, j in pairs]
        return {"added": added, "pairs": pairs, "ids": ids, "says": says, "state": desk.state()}

    @app.get("/api/row/{row}")
    def row(row: int) -> Any:
        _check_rows(desk, row)
        return _row_details(desk, row)

    @app.get("/api/image/{row}")
    def image(row: int) -> Any:
        _check_rows(desk, row)
        path = desk.table.image_file(row)
        if path is None or path.stat().st_size > _MOST_IMAGE:
            raise HTTPException(404, "this row has no image below the folder of the data")
        return FileResponse(path, media_type=image_type(path))

    @app.get("/api/labels")
    def labels() -> Any:
        view = desk.view
        found = np.zeros(len(desk.table), dtype="<u2") if view is None else view.labels.astype("<u2")
        version = 0 if view is None else view.version
        return _binary(found.tobytes(), version)

    @app.get("/api/embeddings")
    def embeddings() -> Any:
        return pictures.listed()

    @app.get("/api/embedding/{name}")
    def embedding(name: Literal["pca", "discriminant", "spectral"]) -> Any:
        version, points = pictures.points(name)
        return _binary(points.tobytes(), version)

    _add_classes(app, classes)
    _add_exports(app, desk, classes)
    if STATIC.is_dir():
        app.mount("/", StaticFiles(directory=STATIC, html=True), name="page")
    return app


def _add_classes(app: FastAPI, classes: ClassDesk | None) -> None:
    """Beliefs, runs and new classes; refused where no column of classes was named."""

    def desk() -> ClassDesk:
        if classes is None:
            raise HTTPException(
                404, "no column of classes was named; start the workbench with --label COLUMN"
            )
        return classes

    @app.get("/api/beliefs")
    def beliefs() -> Any:
        return desk().table_of_beliefs()

    @app.put("/api/beliefs")
    def believe(body: BeliefBody) -> Any:
        desk().believe(body.i, body.j, body.belief)
        return desk().table_of_beliefs()

    @app.get("/api/classes/run")
    def run() -> Any:
        return desk().run_state()

    @app.post("/api/classes/run")
    def start(body: EmptyBody) -> Any:
        desk().start()
        return {"run": desk().run_state()}

    @app.post("/api/classes/accept")
    def accept(body: EmptyBody) -> Any:
        return {"labels_file": desk().accept().name}


def _add_exports(app: FastAPI, desk: Desk, classes: ClassDesk | None) -> None:
    """Files to download."""
    makers: dict[str, tuple[str, Callable[[], bytes]]] = {
        "links.csv": ("text/csv", lambda: exports.links_csv(desk)),
        "labels.csv": ("text/csv", lambda: exports.labels_csv(desk)),
        "model.zip": ("application/zip", lambda: exports.model_zip(desk)),
        "report.html": ("text/html", lambda: exports.report_html(desk)),
    }
    if classes is not None:
        makers["classes.csv"] = ("text/csv", lambda: classes.proposal_csv().encode())
        makers["classes.html"] = ("text/html", lambda: classes.report_html().encode())

    @app.get("/api/export/{name}")
    def export(name: str) -> Any:
        if name not in makers:
            raise HTTPException(404, f"there is no such file; choose one of {', '.join(makers)}")
        kind, make = makers[name]
        headers = {"Content-Disposition": f'attachment; filename="{name}"'}
        return Response(make(), media_type=kind, headers=headers)


def _binary(content: bytes, version: int) -> Response:
    headers = {"X-Model-Version": str(version)}
    return Response(content, media_type="application/octet-stream", headers=headers)


def _check_rows(desk: Desk, *rows: int) -> None:
    n = len(desk.table)
    bad = next((row for row in rows if not 0 <= row < n), None)
    if bad is not None:
        raise HTTPException(422, f"there is no row {bad}; rows are 0..{n - 1}")


def _row_details(desk: Desk, row: int) -> dict[str, Any]:
    """A record, the probabilities of its clusters, and what they come from."""
    view = desk.view
    touching = [line for line in desk.answer_lines() if row in (line["i"], line["j"])]
    probabilities = []
    why = []
    for line in touching:
        other = line["ids"][1 if line["i"] == row else 0]
        word = {"same": "same as", "different": "different from"}.get(line["says"], "unsure about")
        by = f" ({line['source']})" if line["source"] else ""
        why.append(f"answer {line['answer'] + 1}: {word} {other}{by}")
    if view is not None:
        prob = view.probabilities(row)
        order = np.argsort(-prob, kind="stable")[:_N_CLUSTERS_SHOWN]
        # The last one stands for all clusters that no answer has found.
        probabilities = [
            {"cluster": int(view.clusters[place]) if place < len(prob) - 1 else -1, "p": float(prob[place])}
            for place in order.tolist()
            if prob[place] > 0.0
        ]
        landmark = int(view.landmark_of[row])
        if landmark != row:
            why.append(f"it has the cluster of the nearest landmark, {desk.table.name_of(landmark)}")
        elif not touching:
            why.append("nobody was asked about it: its cluster follows from rows that are like it")
    record = {**desk.table.record(row), "cluster": desk.cluster_of(row)}
    return {"record": record, "probabilities": probabilities, "why": why, "links": touching}


def _add_errors(app: FastAPI) -> None:
    """Every error is one line."""

    @app.exception_handler(StarletteException)
    def refused(request: Request, error: StarletteException) -> Response:
        return JSONResponse({"error": str(error.detail)}, error.status_code)

    @app.exception_handler(RequestValidationError)
    def malformed(request: Request, error: RequestValidationError) -> Response:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"][1:]) or "the request"
        return JSONResponse({"error": f"{where}: {first['msg']}"[:300]}, 422)

    @app.exception_handler(Conflict)
    def conflict(request: Request, error: Conflict) -> Response:
        return JSONResponse({"error": str(error)}, 409)

    @app.exception_handler(InfeasibleConstraints)
    def infeasible(request: Request, error: InfeasibleConstraints) -> Response:
        return JSONResponse({"error": f"not kept: it contradicts facts told before ({error})"}, 409)

    @app.exception_handler(ValueError)
    def wrong(request: Request, error: ValueError) -> Response:
        return JSONResponse({"error": first_line(error)}, 400)

    @app.exception_handler(Missing)
    def missing(request: Request, error: Missing) -> Response:
        return JSONResponse({"error": str(error)}, 404)

    @app.exception_handler(OSError)
    def no_disk(request: Request, error: OSError) -> Response:
        return JSONResponse({"error": f"it could not be kept: {error}"}, 507)

    @app.exception_handler(Exception)
    def defect(request: Request, error: Exception) -> Response:
        said = f"a defect ({type(error).__name__}: {first_line(error)}); please report it"
        return JSONResponse({"error": said}, 500)


class Server:
    """The page of a desk at an address, known before ``run`` serves it until it is told to stop."""

    def __init__(
        self, desk: Desk, classes: ClassDesk | None = None, *, host: str = "127.0.0.1", port: int = 0
    ) -> None:
        import uvicorn

        self.desk, self.token = desk, secrets.token_urlsafe(32)
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self._socket = socket.socket(family, socket.SOCK_STREAM)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            self._socket.bind((host, port))
            self._socket.listen()  # a browser that is early waits
        except OSError as error:
            self._socket.close()
            reason = error.strerror or str(error)
            raise OSError(f"{host}:{port} cannot be listened at ({reason}); choose another --port") from None
        self.port: int = self._socket.getsockname()[1]
        self._host = host
        self.pictures = Pictures(desk.table.X, desk.labels)
        app = make_app(desk, self.pictures, classes)
        guarded = Access(app, token=self.token, port=self.port, is_served=served_hosts(host))
        # The access log would hold the secret, and uvicorn's own headers are not ours to trust.
        config = uvicorn.Config(
            guarded, log_level="warning", access_log=False, proxy_headers=False, server_header=False,
            ws="none", timeout_graceful_shutdown=2, h11_max_incomplete_event_size=65536,
        )  # fmt: skip
        self.uvicorn: uvicorn.Server = uvicorn.Server(config)

    @property
    def address(self) -> str:
        """Where the page is, with the secret."""
        host = self._host
        if host in ("0.0.0.0", "::"):
            host = socket.gethostname()
        shown = f"[{host}]" if ":" in host else host
        return f"http://{shown}:{self.port}/?token={self.token}"

    def run(self) -> None:
        """Serve until a signal, or ``stop``."""
        try:
            self.uvicorn.run(sockets=[self._socket])
        finally:
            self._socket.close()

    def stop(self) -> None:
        """Let ``run`` end."""
        self.uvicorn.should_exit = True

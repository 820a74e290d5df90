"""The command: options, messages, and the address it prints."""

import pytest
from typer.testing import CliRunner

from linkwise.cli.app import app
from linkwise.workbench import app as server
from linkwise.workbench import command

RUNNER = CliRunner()


@pytest.fixture
def started(monkeypatch):
    """Servers that the command made; none of them serves."""
    found = []
    monkeypatch.setattr(server.Server, "run", lambda self: found.append(self))
    monkeypatch.setattr(command.webbrowser, "open", lambda address: found.append(address))
    return found


def run(*arguments):
    return RUNNER.invoke(app, ["workbench", *map(str, arguments)])


def test_the_address_is_printed_and_opened(iris, tmp_path, started):
    result = run(iris[0], "--id", "id", "--label", "class", "--session", tmp_path)
    assert result.exit_code == 0, result.output
    opened, made = started
    assert opened == made.address
    assert opened in result.output
    assert "warning" not in result.output
    result = run(iris[0], "--id", "id", "--label", "class", "--session", tmp_path, "--no-browser")
    assert len(started) == 3


def test_ctrl_c_ends_it_without_an_error(iris, tmp_path, monkeypatch):
    def interrupted(self):
        self.desk.tell(0, 1, "same")
        raise KeyboardInterrupt

    monkeypatch.setattr(server.Server, "run", interrupted)
    options = ["--id", "id", "--ignore", "class", "--session", tmp_path / "s", "--no-browser"]
    result = run(iris[0], *options)
    assert result.exit_code == 0
    assert "1 answer kept" in result.output
    assert "Going on after 1 answer in" in run(iris[0], *options).output


def test_other_machines_are_let_in_with_a_warning(iris, tmp_path, started):
    result = run(
        iris[0], "--id", "id", "--ignore", "class", "--session", tmp_path, "--host", "0.0.0.0", "--no-browser"
    )
    assert result.exit_code == 0, result.output
    assert "can be reached from other machines" in result.output
    assert "nothing is encrypted" in result.output


def test_the_session_is_beside_the_data(tmp_path, started):
    path = tmp_path / "few.csv"
    path.write_text("a,b\n0,0\n0,1\n9,9\n", encoding="utf-8")
    assert run(path, "--no-browser").exit_code == 0
    assert (tmp_path / "few.linkwise" / "answers.journal").exists()


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        ("a,b\n0,0\n0,1\n", ["--image-column", "c"], "no column 'c' (--image-column)"),
        ("a,b\n0,0\n", [], "there is no pair to ask about"),
        ("a,b\n0,0\n0,1\n", ["-k", "3"], "3 clusters cannot be made of 2 rows"),
        ("a,b\nx,y\nz,w\n", [], "no column left to cluster by"),
        ("a,b\n0,0\n0,1\n", ["--session", "data.csv"], "is not a folder"),
        ("a,b\nx,!\nx,?\n", ["--text-column", "b"], "fewer than two different words"),
    ],
)
def test_errors_are_one_line(text, options, message, tmp_path, started, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data.csv").write_text(text, encoding="utf-8")
    result = run("data.csv", "--no-browser", *options)
    assert result.exit_code != 0
    assert message in result.output
    assert len(result.output.strip().splitlines()) == 1
    assert not [one for one in started if not isinstance(one, str)]


def test_a_port_in_use_is_named(iris, tmp_path, started):
    import socket

    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        result = run(iris[0], "--id", "id", "--ignore", "class", "--session", tmp_path, "--port", port)
    assert result.exit_code != 0
    assert f"127.0.0.1:{port} cannot be listened at" in result.output

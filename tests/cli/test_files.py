"""Whatever stops the writing, there is the earlier file or the new one, and nothing else."""

from __future__ import annotations

import pytest

from linkwise._files import replacing
from linkwise.cli.output import write_text


@pytest.mark.parametrize("interruption", [KeyboardInterrupt, SystemExit, OSError])
@pytest.mark.parametrize("earlier", [None, "old"])
def test_interrupted_file_leaves_what_was_there(tmp_path, interruption, earlier):
    target = tmp_path / "new" / "labels.csv"
    if earlier is not None:
        write_text(target, earlier)

    def write():
        with replacing(target) as draft:
            draft.write_text("half a fi")
            raise interruption

    with pytest.raises(interruption):
        write()
    left = {path.name: path.read_text() for path in target.parent.iterdir()}
    assert left == ({} if earlier is None else {"labels.csv": "old"})


def test_files_have_the_usual_rights(tmp_path):
    plain = tmp_path / "plain"
    plain.write_text("")
    assert write_text(tmp_path / "ours", "").stat().st_mode == plain.stat().st_mode

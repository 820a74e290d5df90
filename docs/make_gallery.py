"""Run the examples, save their pictures and write the gallery page: ``python docs/make_gallery.py``.

Names of examples as arguments (``plot_cop_kmeans``) redraw only those; the page is always written.
"""

from __future__ import annotations

import ast
import os
import runpy
import sys
import warnings
from pathlib import Path
from time import perf_counter

os.environ["MPLBACKEND"] = "Agg"  # before pyplot is imported

import matplotlib.pyplot as plt
from PIL import Image

DOCS = Path(__file__).parent
EXAMPLES = DOCS.parent / "examples"
PICTURES = DOCS / "_static" / "gallery"
DPI = 80
LARGEST = 60_000

HEAD = """# Gallery

Every picture is drawn by the script below it, which runs in seconds and needs no data but its own.
Download one, run it, change it. `python docs/make_gallery.py` draws all of them anew.
"""


def title_and_text(script: Path) -> tuple[str, str]:
    """First line and sentences of the script's docstring."""
    docstring = ast.get_docstring(ast.parse(script.read_text(encoding="utf-8")))
    assert docstring is not None, f"{script.name} has no docstring"
    title, _, text = docstring.partition("\n")
    return title, " ".join(text.lstrip("=\n").split()).replace("``", "`")


def draw(script: Path) -> Path:
    """Run the script and save the figure it leaves open."""
    plt.close("all")
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*non-interactive")
        runpy.run_path(str(script), run_name="__main__")
    numbers = plt.get_fignums()
    assert len(numbers) == 1, f"{script.name} leaves {len(numbers)} figures open; the gallery shows one"
    path = PICTURES / f"{script.stem}.png"
    plt.figure(numbers[0]).savefig(path, dpi=DPI)
    plt.close("all")
    with Image.open(path) as opened:
        picture = opened.convert("RGB")
    picture.save(path, optimize=True)
    for n_colours in (256, 128, 64):
        if path.stat().st_size < LARGEST:
            break
        picture.quantize(n_colours, dither=Image.Dither.NONE).save(path, optimize=True)
    return path


def page(scripts: list[Path]) -> str:
    """The gallery in Markdown."""
    parts = [HEAD]
    for script in scripts:
        title, text = title_and_text(script)
        parts.append(
            f"## {title}\n\n"
            f"```{{image}} _static/gallery/{script.stem}.png\n:alt: {title}\n:width: 100%\n```\n\n"
            f"{text}\n\n"
            f"{{download}}`{script.name} <../examples/{script.name}>`\n"
        )
    return "\n".join(parts)


def main(names: list[str]) -> None:
    scripts = sorted(EXAMPLES.glob("plot_*.py"))
    PICTURES.mkdir(parents=True, exist_ok=True)
    for script in scripts:
        if names and script.stem not in names:
            continue
        begin = perf_counter()
        path = draw(script)
        size = path.stat().st_size
        print(f"{path.name}: {perf_counter() - begin:.1f} s, {size / 1000:.0f} kB")
        assert size < LARGEST, f"{path.name} has {size} bytes, more than {LARGEST}: draw less"
    (DOCS / "gallery.md").write_text(page(scripts), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])

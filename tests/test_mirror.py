"""Every module has a test of its name, one that imports it, or one that THROUGH names beside it."""

import re
from pathlib import Path

import linkwise

TESTS = Path(__file__).parent
PACKAGE = Path(linkwise.__file__).parent

#: Modules that tests reach only through a public name or another module.
THROUGH = {
    "__main__": "cli/test_process.py",
    "_arrays": "test_row_tables.py",
    "active.checks": "active/test_session.py",
    "beliefs.io": "beliefs/test_beliefs.py",
    "cli.demo.chapters": "cli/test_demo.py",
    "cli.fit.fitting": "cli/test_commands.py",
    "cli.map.legend": "cli/test_map.py",
    "cli.map.report": "cli/test_map_report.py",
    "cli.predict": "cli/test_commands.py",
    "constraints.cells": "constraints/test_io.py",
    "constraints.evidence": "constraints/test_constraints.py",
    "constraints.labels": "constraints/test_label_links.py",
    "constraints.summary": "constraints/test_constraints.py",
    "datasets.images": "test_datasets.py",
    "datasets.points": "test_datasets.py",
    "datasets.published": "test_datasets.py",
    "dask.class_tables": "dask/test_classes.py",
    "dask.estimator": "dask/test_mixture.py",
    "dask.jobs": "dask/test_mixture.py",
    "dask.kmeans_rows": "dask/test_kmeans.py",
    "displays._inputs": "displays/test_clusters.py",
    "displays.belief_map": "displays/test_heat_maps.py",
    "displays.annotators": "displays/test_curves.py",
    "displays.convergence": "displays/test_curves.py",
    "displays.criterion": "displays/test_curves.py",
    "displays.link_curve": "displays/test_curves.py",
    "inference.exact.bucket_kernels": "inference/exact/test_junction_tree.py",
    "inference.field": "inference/test_api.py",
    "inference.messages.linear": "inference/messages/test_sum_product.py",
    "inference.messages.logarithmic": "inference/messages/test_sum_product.py",
    "inference.messages.maximum": "inference/messages/test_max_product.py",
    "kmeans.distortions.base": "kmeans/distortions/test_distortions.py",
    "kmeans.distortions.divergences": "kmeans/distortions/test_distortions.py",
    "kmeans.distortions.euclidean": "kmeans/distortions/test_distortions.py",
    "kmeans.fitted": "kmeans/test_hmrf_kmeans.py",
    "mixture.classes.report.page": "mixture/classes/test_report.py",
    "mixture.classes.report.text": "mixture/classes/test_report.py",
    "mixture.prediction": "mixture/test_ppc.py",
    "persistence.checks": "persistence/test_model_files.py",
    "persistence.votes": "persistence/test_persistence.py",
    "raster.places": "raster/test_samples.py",
    "spectral.base": "spectral/test_constrained.py",
    "spectral.solvers": "spectral/test_constrained.py",
    "workbench.exports": "workbench/test_classes.py",
}


def is_tested(module: str, texts: str) -> bool:
    parent, _, name = module.rpartition(".")
    own = TESTS.joinpath(*parent.split("."), f"test_{name.lstrip('_')}.py")
    room = f"linkwise.{parent}".removesuffix(".")
    imported = rf"\b{re.escape(room)}(\.{name}\b| import [^\n]*\b{name}\b)"
    return own.exists() or re.search(imported, texts) is not None


def test_every_module_has_a_test():
    lines = (line for path in TESTS.rglob("*.py") for line in path.read_text(encoding="utf-8").splitlines())
    texts = "\n".join(line for line in lines if "linkwise" in line)
    modules = {".".join(path.relative_to(PACKAGE).with_suffix("").parts) for path in PACKAGE.rglob("*.py")}
    modules = {module for module in modules if not module.endswith("__init__")}
    assert len(modules) > 100
    untested = sorted(module for module in modules - set(THROUGH) if not is_tested(module, texts))
    assert not untested, f"{untested}: write a test of that name, or name the test that reaches it in THROUGH"
    for module in modules & set(THROUGH):
        assert (TESTS / THROUGH[module]).exists(), f"{module}: {THROUGH[module]} is gone"


def test_quick_tests_exist():
    for line in (TESTS / "quick.txt").read_text(encoding="utf-8").splitlines():
        assert (TESTS.parent / line.split("::")[0]).exists(), line

"""``linkwise check``: contradictions among the links, their graph, and the cost of inference."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from linkwise._pages import TextTable
from linkwise._tables import read_frame
from linkwise.cli import options
from linkwise.cli.errors import INFEASIBLE, CommandError
from linkwise.cli.output import Output
from linkwise.cli.samples import Samples, checked_ids
from linkwise.cli.tables import LinkList, read_link_list, refuse_unknown

if TYPE_CHECKING:
    from linkwise.constraints import Constraints
    from linkwise.exceptions import Witness
    from linkwise.inference.exact.junction_tree import Plan

# Some bytes of memory for each.
_MOST_ROWS = 10**8
# 0.8 GB of probabilities.
_MOST_ENTRIES = 10**8
_BELOW_EXACT = "belief propagation (approximate)"


def check(
    links: Annotated[
        Path, typer.Argument(metavar="LINKS", help="File of links, as for `linkwise fit --links`.")
    ],
    n_samples: Annotated[
        int | None, typer.Option("-n", "--samples", min=1, help="Number of rows of the data.")
    ] = None,
    n_clusters: Annotated[
        int | None, typer.Option("-k", "--clusters", min=1, help="Number of clusters.")
    ] = None,
    data: Annotated[
        Path | None,
        typer.Option("--data", metavar="FILE", help="The data, instead of -n; needed for links by id."),
    ] = None,
    id_column: options.IdOption = None,
    certainty: options.CertaintyOption = None,
    left: options.LeftOption = None,
    right: options.RightOption = None,
    ignore_columns: options.IgnoreColumnsOption = None,
    most: Annotated[int, typer.Option("--most", min=1, help="Stop after this many contradictions.")] = 10,
    as_json: options.JsonOption = False,
) -> None:
    """Find contradictions with the links that prove them, and what inference will cost.

    Ends with exit code 3 if hard links contradict each other or need more than -k clusters.
    """
    out = Output(as_json)
    samples = None if data is None else _rows_of(data, id_column)
    if samples is None and id_column is not None:
        raise CommandError("links by id need the data; pass --data FILE")
    if samples is not None and n_samples not in (None, len(samples)):
        raise CommandError(f"-n {n_samples}, but {data} has {len(samples)} rows; leave -n out")
    if samples is not None:
        n_samples = len(samples)
    places = None if samples is None else samples.places
    columns = options.link_columns(left, right, ignore_columns)
    lines = read_link_list(links, n_samples, places=places, certainty=certainty, columns=columns)
    if n_samples is None:
        n_samples = int(lines.pairs.max()) + 1
        out.warn(f"assuming {n_samples} rows, up to the largest row number; pass -n")
    if n_samples > _MOST_ROWS:
        raise CommandError(
            f"{n_samples} rows are more than the {_MOST_ROWS} that can be checked; check a part of the links"
        )
    options.refuse_more_clusters(n_clusters, n_samples)
    with out.progress("looking for contradictions"):
        witnesses, sound, status = find_contradictions(lines, n_samples, n_clusters, most)
    with out.progress("planning inference"):
        plan, seconds = _cost(sound, n_clusters)

    n_free = n_samples - len(np.unique(sound.pairs))
    found = _contradiction_table(witnesses, samples, most)
    out.table(_structure(sound, lines, plan, kept_all=not witnesses))
    out.table(_cost_table(plan, n_clusters or 2, n_free))
    if seconds is not None:
        out.say(f"One pass of inference took {seconds:.4f} s here; EM needs one or two in every iteration.")
    if witnesses:
        out.table(found)
    elif status == "unknown":
        out.say(
            f"Whether {n_clusters} clusters can satisfy the hard links was not decided within the budget."
        )
    else:
        out.say("No contradictions" + (f" with {n_clusters} clusters." if n_clusters else "."))
    out.finish(
        {
            "feasible": {"feasible": True, "infeasible": False, "unknown": None}[status],
            "contradictions": [_witness_record(witness) for witness in witnesses],
            "n_samples": n_samples,
            "n_links": sound.n_pairs,
            "n_components": len(plan.sizes) + n_free,
            "largest_component": int(plan.sizes.max(initial=1)),
            "largest_width": int(plan.widths.max(initial=0)),
            "exact": bool(plan.feasible.all()),
            "seconds_of_inference": seconds,
        }
    )
    if witnesses:
        raise typer.Exit(INFEASIBLE)


def _rows_of(path: Path, id_column: str | None) -> Samples:
    """Read only the ids and the number of rows of a data file."""
    frame = read_frame(path, [] if id_column is None else [id_column])
    refuse_unknown(path, [] if id_column is None else [id_column], frame.columns)
    ids = None if id_column is None else checked_ids(path, frame[id_column])
    return Samples(path, frame, ids)


def find_contradictions(
    lines: LinkList, n_samples: int, n_clusters: int | None, most: int
) -> tuple[list[Witness], Constraints, str]:
    """At most ``most`` witnesses, the links without those they blame, and the status of all links."""
    from linkwise.constraints import Constraints
    from linkwise.exceptions import InfeasibleConstraints
    from linkwise.graph import check_feasibility

    pairs, weights = lines.pairs, lines.weights
    witnesses: list[Witness] = []
    while True:
        must = weights > 0
        strength = np.abs(np.concatenate([weights[must], weights[~must]]))
        try:
            sound = Constraints(n_samples, pairs[must], pairs[~must], weight=strength)
            found = check_feasibility(n_samples, sound.pairs.copy(), sound.weights.copy(), n_clusters)
            status, witness = found.status, found.witness
        except InfeasibleConstraints as error:
            status, witness = "infeasible", error.witness
        if witness is None:
            return witnesses, sound, "infeasible" if witnesses else status
        if len(witnesses) < most:
            witnesses.append(witness)
        # Past the number to report, the rest of the cannot-links that contradict goes at once.
        blamed = np.array(witness.cannot_link[:1])
        drop = (pairs == blamed).all(axis=1) & (weights == -np.inf)
        if len(witnesses) == most:
            drop = weights == -np.inf
        pairs, weights = pairs[~drop], weights[~drop]


def _cost(links: Constraints, n_clusters: int | None) -> tuple[Plan, float | None]:
    """Plan how linked rows will be solved and, if the number of clusters is known, time one pass."""
    from linkwise.exceptions import InfeasibleConstraints
    from linkwise.inference import PottsField, marginals
    from linkwise.inference.auto import AUTO_TABLE
    from linkwise.inference.exact.junction_tree import plan
    from linkwise.inference.problem import reduce_field

    # The other rows are solved one by one; leaving them out bounds time and memory by the links.
    links = links[np.unique(links.pairs)]
    entries = links.n_samples * (n_clusters or 2)
    if entries > _MOST_ENTRIES:
        raise CommandError(
            f"-k {n_clusters} with {links.n_samples} linked rows takes {entries} probabilities; ask for fewer"
        )
    unary = np.random.default_rng(0).normal(size=(links.n_samples, n_clusters or 2))
    field = PottsField(unary, links.pairs.copy(), 2.0 * links.weights)
    planned = plan(reduce_field(field, keep_zero_in_component=True).problem, AUTO_TABLE)
    if n_clusters is None:
        return planned, None
    try:
        marginals(field, random_state=0)  # compiles, where that has not been done before
    except InfeasibleConstraints:  # not decided by the search for contradictions
        return planned, None
    began = time.perf_counter()
    marginals(field, random_state=0)
    return planned, time.perf_counter() - began


def _structure(links: Constraints, lines: LinkList, plan: Plan, *, kept_all: bool) -> TextTable:
    chunklets = np.bincount(links.chunklets())
    components = np.bincount(links.components())
    hard = np.isinf(links.weights)
    must = links.weights > 0
    rows = [
        ["lines of the file", str(len(lines.weights))],
        ["must-links", f"{int(must.sum())} ({int((must & hard).sum())} hard)"],
        ["cannot-links", f"{int((~must).sum())} ({int((~must & hard).sum())} hard)"],
        ["rows", str(links.n_samples)],
        ["rows with links", str(len(np.unique(links.pairs)))],
        [
            "groups joined by hard must-links",
            f"{int((chunklets > 1).sum())}, the largest of {int(chunklets.max())} rows",
        ],
        [
            "components of linked rows",
            f"{int((components > 1).sum())}, the largest of {int(components.max())} rows",
        ],
        ["largest width", str(int(plan.widths.max(initial=0)))],
    ]
    title = "Links" if kept_all else "Links, without the cannot-links that contradict others"
    return TextTable(title, ["", ""], rows)


def _cost_table(plan: Plan, n_clusters: int, n_free: int) -> TextTable:
    kinds = {
        "single rows": (plan.sizes == 1, "exact, one by one"),
        "trees": (plan.forest & (plan.sizes > 1), "exact, two passes"),
        "all apart": (plan.distinct, "exact, sums over sets of clusters"),
        "narrow": (~plan.forest & ~plan.distinct & plan.feasible, "exact, junction tree"),
        "wide": (~plan.feasible, _BELOW_EXACT),
    }
    rows = []
    for name, (chosen, solved) in kinds.items():
        free = n_free if name == "single rows" else 0
        if not chosen.any() and not free:
            continue
        widths = plan.widths[chosen] if chosen.any() else np.zeros(1, dtype=np.int64)
        width = f"{widths.min()}–{widths.max()}" if widths.min() < widths.max() else str(widths.max())
        n_entries = float(n_clusters) ** (int(widths.max()) + 1)
        entries = f"{2.0**n_clusters if name == 'all apart' else n_entries:.3g}"
        # Of a wide component only a lower bound of the width is known.
        at_least = ">= " if name == "wide" else ""
        rows.append(
            [
                name,
                solved,
                str(int(chosen.sum()) + free),
                str(int(plan.sizes[chosen].sum()) + free),
                at_least + width,
                at_least + entries,
            ]
        )
    return TextTable(
        f"Inference with {n_clusters} clusters",
        ["components", "solved by", "number", "groups of rows", "width", "largest table"],
        rows,
        2,
    )


def _contradiction_table(witnesses: list[Witness], samples: Samples | None, most: int) -> TextTable:
    rows = [
        [str(number + 1), witness.kind.replace("_", " "), witness.message]
        for number, witness in enumerate(witnesses)
    ]
    if samples is not None and samples.ids is not None:
        for row, witness in zip(rows, witnesses, strict=True):
            points = sorted({point for link in witness.must_link + witness.cannot_link for point in link})
            row.append(", ".join(f"{point} = {samples.name_of(point)}" for point in points[:12]))
    more = f" (there may be more than {most})" if len(witnesses) == most else ""
    heads = ["", "kind", "proof", "ids"][: 4 if rows and len(rows[0]) == 4 else 3]
    return TextTable(f"Contradictions{more}", heads, rows, 4)


def _witness_record(witness: Witness) -> dict[str, Any]:
    return {
        "kind": witness.kind,
        "message": witness.message,
        "must_link": witness.must_link,
        "cannot_link": witness.cannot_link,
        "n_clusters": witness.n_clusters,
    }

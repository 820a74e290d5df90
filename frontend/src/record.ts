// Records: one alone, or two side by side with their differences marked.
import type { Column, Entry, Row } from "./api";
import { el, type Child } from "./dom";
import { clusterColour, swatch } from "./palette";
import { state } from "./store";

export const clusterName = (cluster: number | null): string => (cluster === null || cluster < 0 ? "a new one" : `cluster ${cluster}`);

/** How a picture is shown; a notebook has to fetch it first. */
export const pictures = {
    show(image: HTMLImageElement, path: string): void {
        image.src = path;
    },
};

export function clusterChip(cluster: number): HTMLElement {
    return el("span", { class: "chip" }, swatch(cluster), clusterName(cluster));
}

const left = (n: number | undefined): HTMLElement | false => !!n && el("p", { class: "muted" }, `${n} more columns are not shown.`);

function picture(row: Row): HTMLElement | null {
    if (!row.image) return null;
    const image = el("img", { alt: `Picture of ${row.id}`, class: "thumb" });
    pictures.show(image, row.image);
    image.addEventListener("error", () => image.replaceWith(el("span", { class: "thumb missing" }, "no picture")));
    return el("a", { href: row.image, target: "_blank", rel: "noopener", title: "Open the whole picture" }, image);
}

/** The text, with the words marked that the other text lacks. */
function marked(text: string, other: string): HTMLElement {
    const words = (from: string): Set<string> => new Set(from.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? []);
    const known = words(other);
    const parts: Child[] = [];
    let plain = "";
    for (const piece of text.split(/([\p{L}\p{N}]+)/u)) {
        if (/[\p{L}\p{N}]/u.test(piece) && !known.has(piece.toLowerCase())) {
            parts.push(plain, el("mark", {}, piece));
            plain = "";
        } else {
            plain += piece;
        }
    }
    parts.push(plain);
    return el("p", { class: "prose" }, ...parts.filter((part) => part !== ""));
}

/** Where two numbers lie between the low and the high end of their column. */
function strip(column: Column | undefined, entries: Entry[]): HTMLElement | null {
    const { low, high } = column ?? {};
    if (typeof low !== "number" || typeof high !== "number" || !(high > low)) return null;
    const line = el("span", { class: "strip", "aria-hidden": "true" });
    entries.forEach((entry, k) => {
        const value = Number(entry.value);
        if (entry.value === "" || !Number.isFinite(value)) return;
        const dot = el("span", { class: k ? "dot second" : "dot" });
        dot.style.left = `${(100 * Math.min(1, Math.max(0, (value - low) / (high - low)))).toFixed(2)}%`;
        line.append(dot);
    });
    return line;
}

/** Two records as one table, a line for each column. */
export function comparison(records: [Row, Row], differs: string[], hidden = 0, short = false): HTMLElement {
    const [a, b] = records;
    const different = new Set(differs);
    const columns = new Map((state()?.columns ?? []).map((column) => [column.name, column]));
    const head = el(
        "thead",
        {},
        el(
            "tr",
            {},
            el("th", { class: "name", scope: "col" }, el("span", { class: "unseen" }, "column")),
            ...records.map((row, k) =>
                el(
                    "th",
                    { scope: "col" },
                    el("span", { class: "who" }, el("span", { class: k ? "dot second" : "dot", "aria-hidden": "true" }), row.id),
                    picture(row),
                ),
            ),
        ),
    );
    const body = el("tbody");
    if (a.text !== null || b.text !== null) {
        body.append(
            el(
                "tr",
                { class: "texts" },
                el("th", { class: "name", scope: "row" }, state()?.text_column ?? "text"),
                el("td", {}, marked(a.text ?? "", b.text ?? "")),
                el("td", {}, marked(b.text ?? "", a.text ?? "")),
            ),
        );
    }
    const shown = short ? a.values.map((_, k) => k).filter((k) => different.has(a.values[k]?.name ?? "")).slice(0, 6) : a.values.map((_, k) => k);
    for (const k of shown) {
        const first = a.values[k] as Entry;
        const second = b.values[k] as Entry;
        const other = different.has(first.name);
        const kind = `${first.number ? "number" : ""}${other ? " differs" : ""}`.trim();
        body.append(
            el(
                "tr",
                { class: kind || null },
                el(
                    "th",
                    { class: "name", scope: "row" },
                    el("span", {}, first.name),
                    other && el("span", { class: "unequal" }, el("span", { "aria-hidden": "true" }, "≠"), el("span", { class: "unseen" }, "differs")),
                    strip(columns.get(first.name), [first, second]),
                ),
                el("td", {}, first.value === "" ? "–" : first.value),
                el("td", {}, second.value === "" ? "–" : second.value),
            ),
        );
    }
    const table = el("table", { class: "pair" }, el("caption", { class: "unseen" }, "Two records side by side"), head, body);
    return el("div", {}, table, left(hidden));
}

/** One record as a list of its values. */
export function single(row: Row): HTMLElement {
    return el(
        "div",
        { class: "record" },
        picture(row),
        row.text !== null && el("p", { class: "prose" }, row.text),
        el(
            "dl",
            {},
            ...row.values.map((entry) =>
                el("div", {}, el("dt", {}, entry.name), el("dd", { class: entry.number ? "number" : null }, entry.value || "–")),
            ),
        ),
        left(row.hidden),
    );
}

/** A bar for a probability. */
export function bar(p: number, cluster: number | null): HTMLElement {
    const fillBar = el("span");
    fillBar.style.width = `${Math.max(1, 100 * p)}%`;
    if (cluster !== null && cluster >= 0) fillBar.style.background = clusterColour(cluster);
    return el("span", { class: "bar", "aria-hidden": "true" }, fillBar);
}

// Room 5: what is kept, what can be taken along, and how the page behaves.
import type { State } from "./api";
import { count, el, fill, memory, shell } from "./dom";
import type { Room } from "./room";
import { repaint } from "./see";
import { state } from "./store";

const EXPORTS: { file: string; name: string; text: string; classes?: true }[] = [
    { file: "links.csv", name: "Links", text: "Every answer as a line: two rows, same or different, how certain, who." },
    { file: "labels.csv", name: "Labels", text: "The cluster of each row." },
    { file: "model.zip", name: "Model", text: "A fitted model that labels new rows: linkwise predict, or linkwise.persistence.load." },
    { file: "report.html", name: "Report", text: "One page with the clusters, the answers and their doubts, to read and to send." },
    { file: "classes.csv", name: "New classes", text: "The labels of the last proposal.", classes: true },
];

const saved = el("p", { class: "lead" });
const exports = el("ul", { class: "exports" });
const people = el("section", { class: "card" });
const notes = el("section", { class: "card" });
const root = el(
    "section",
    { class: "room keep", "aria-labelledby": "keep-title" },
    el("h1", { id: "keep-title", tabindex: "-1" }, "Keep"),
    saved,
    el("div", { class: "two" }, el("section", { class: "card" }, el("h2", {}, "Download"), exports), el("div", { class: "stack" }, people, notes, settings(), keys())),
);

export function keysWanted(): boolean {
    return memory.get("keys") !== "off";
}

export function applyTheme(): void {
    const theme = memory.get("theme");
    if (theme === "light" || theme === "dark") shell.dataset["theme"] = theme;
    else delete shell.dataset["theme"];
    repaint();
}

function settings(): HTMLElement {
    const box = el("input", { type: "checkbox", id: "single-keys", change: () => memory.set("keys", box.checked ? "on" : "off") });
    box.checked = keysWanted();
    const themes = el(
        "select",
        {
            id: "theme",
            change: () => {
                memory.set("theme", themes.value);
                applyTheme();
            },
        },
        ...(["as the system", "light", "dark"] as const).map((theme) => el("option", { value: theme, selected: memory.get("theme") === theme }, theme)),
    );
    return el(
        "section",
        { class: "card" },
        el("h2", {}, "This page"),
        el("p", {}, el("label", { class: "inline", for: "theme" }, "Colours", themes)),
        el("p", {}, el("label", { class: "inline" }, box, "Answer with single keys")),
    );
}

function keys(): HTMLElement {
    const line = (names: string[], text: string): HTMLElement =>
        el("div", {}, el("dt", {}, ...names.map((name) => el("kbd", {}, name))), el("dd", {}, text));
    return el(
        "section",
        { class: "card" },
        el("h2", {}, "Keys"),
        el(
            "dl",
            { class: "keys" },
            line(["S", "D", "U"], "same, different, not sure"),
            line(["1", "…", "5"], "how sure, or the left and right arrow"),
            line(["Z"], "undo"),
            line(["Alt", "1…5"], "go to another part"),
            line(["M", "A", "B"], "in the plane: move, lasso A, lasso B"),
            line(["+", "−", "0"], "in the plane: zoom, show all"),
        ),
    );
}

function draw(now: State): void {
    fill(
        saved,
        `${count(now.n_answers, "answer")} about ${count(now.n_rows, "row")} of ${now.title} ${now.n_answers === 1 ? "is" : "are"} `,
        now.session
            ? `on disk in ${now.session}. Each answer is written before the next question is shown: a reload, a crash or a second tab loses nothing.`
            : "in the memory of the notebook, and gone when it ends. ActiveClustering(…, journal=\"answers.journal\") keeps them on disk.",
    );
    fill(
        exports,
        ...EXPORTS.filter((entry) => !entry.classes || now.has_classes).map((entry) =>
            el(
                "li",
                {},
                el("span", {}, el("strong", {}, entry.name), el("span", { class: "muted" }, entry.text)),
                el("a", { class: "button", href: `/api/export/${entry.file}`, download: entry.file, "aria-label": `Download ${entry.file}` }, entry.file),
            ),
        ),
    );
    fill(
        notes,
        el("h2", {}, "The data"),
        el("p", {}, `${count(now.n_rows, "row")}, ${count(now.columns.length, "column")} shown.`),
        ...(now.notes ?? []).map((note) => el("p", { class: "muted" }, note)),
    );
    fill(
        people,
        el("h2", {}, "Who answered"),
        now.annotators.length
            ? el("ul", { class: "people" }, ...now.annotators.map((name) => el("li", { class: "chip" }, name)))
            : el("p", { class: "muted" }, "Nobody gave a name yet. Write yours at the top, so that answers can be told apart."),
    );
}

export const keepRoom: Room = {
    name: "keep",
    root,
    show() {
        const now = state();
        if (now) draw(now);
    },
    hide() {},
    update(now) {
        draw(now);
    },
};

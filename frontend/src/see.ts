// Room 2: all rows in the plane.
import { api, type About, type Answer, type Embedding, type State } from "./api";
import { answerLine } from "./answer";
import { active, announce, count, el, fill, notice, percent, pressed } from "./dom";
import { isDark, swatch } from "./palette";
import { bar, clusterChip, clusterName, single } from "./record";
import { walk, type Room } from "./room";
import { Scatter } from "./scatter";
import { annotator, attempt, poll, state, take, ticket } from "./store";

type Mode = "move" | "first" | "second";
const MODES: { mode: Mode; text: string; key: string }[] = [
    { mode: "move", text: "Move", key: "m" },
    { mode: "first", text: "Lasso A", key: "a" },
    { mode: "second", text: "Lasso B", key: "b" },
];

const points = el("canvas", { class: "points", "aria-hidden": "true" });
const overlay = el("canvas", {
    class: "overlay",
    tabindex: "0",
    role: "application",
    "aria-label":
        "The rows in the plane. Arrow keys move, plus and minus zoom, 0 shows all, Enter takes the row nearest to the cross in the middle.",
});
const stage = el("div", { class: "stage" }, points, overlay);
const choice = el("select", { id: "embedding", change: () => void loadEmbedding(choice.value) });
const drawLinks = el("input", { type: "checkbox", checked: true, change: () => redraw() });
const goTo = el("input", { type: "number", min: "0", step: "1", id: "go-to", inputmode: "numeric", placeholder: "number" });
const modes = el("div", { class: "segments", role: "radiogroup", "aria-label": "What dragging does" });
const legend = el("ul", { class: "legend" });
const groupBox = el("section", { class: "card", "aria-label": "Two groups" });
const detail = el("section", { class: "card", "aria-label": "The chosen row", "aria-live": "polite" });
const status = el("p", { class: "stage-note" });

const zoomButton = (text: string, name: string, work: () => void): HTMLElement =>
    el("button", { type: "button", class: "quiet", "aria-label": name, title: name, click: work }, text);

const root = el(
    "section",
    { class: "room see", "aria-labelledby": "see-title" },
    el(
        "div",
        { class: "card plane" },
        el(
            "div",
            { class: "plane-head" },
            el("h1", { id: "see-title", tabindex: "-1" }, "All rows"),
            el("label", { class: "inline", for: "embedding" }, el("span", { class: "unseen" }, "View"), choice),
            el("label", { class: "inline" }, drawLinks, "Answers"),
            modes,
            el(
                "div",
                { class: "segments zoom" },
                zoomButton("+", "Zoom in", () => zoom(1.4)),
                zoomButton("−", "Zoom out", () => zoom(1 / 1.4)),
                zoomButton("All", "Show all rows", () => showAll()),
            ),
        ),
        stage,
        status,
    ),
    el(
        "aside",
        {},
        detail,
        groupBox,
        el(
            "section",
            { class: "card" },
            el("h2", {}, "Clusters"),
            el("p", { class: "muted" }, "Choose one to highlight it."),
            legend,
            el(
                "form",
                {
                    class: "inline",
                    submit: (event: Event) => {
                        event.preventDefault();
                        void choose(Number(goTo.value), true);
                    },
                },
                el("label", { for: "go-to" }, "Go to row"),
                goTo,
                el("button", { type: "submit" }, "Go"),
            ),
        ),
    ),
);

const scatter = new Scatter(points);
let mode: Mode = "move";
let links: Answer[] = [];
let chosen: number[] = [];
let pending: number[] = [];
let about: About | null = null;
let seen = false;
let loaded = "";
let labelled = -1;
let fitted = false;
let frame = 0;
let centres: ReturnType<Scatter["centres"]> = [];
let lasso: [number, number][] = [];
const ratio = (): number => Math.min(2, window.devicePixelRatio || 1);

for (const entry of MODES) {
    const radio = el("input", { type: "radio", name: "mode", value: entry.mode, change: () => setMode(entry.mode) });
    modes.append(el("label", {}, radio, el("span", {}, entry.text)));
}

function setMode(next: Mode): void {
    mode = next;
    modes.querySelectorAll("input").forEach((input) => (input.checked = input.value === next));
    stage.dataset["mode"] = next;
}

function redraw(): void {
    if (!frame && seen) frame = requestAnimationFrame(paint);
}

function paint(): void {
    frame = 0;
    const pixelRatio = ratio();
    const width = Math.round(stage.clientWidth * pixelRatio);
    const height = Math.round(stage.clientHeight * pixelRatio);
    if (!width || !height) return;
    if (points.width !== width || points.height !== height) {
        const grown = points.width ? Math.min(width / points.width, height / points.height) : 1;
        for (const canvas of [points, overlay]) [canvas.width, canvas.height] = [width, height];
        scatter.view.scale *= grown;
    }
    if (!fitted && scatter.n) {
        scatter.fit();
        fitted = true;
    }
    scatter.draw(pixelRatio);
    paintOverlay(pixelRatio);
    stage.dataset["took"] = scatter.took.toFixed(2);
    stage.dataset["view"] = `${scatter.view.x.toFixed(4)} ${scatter.view.y.toFixed(4)} ${scatter.view.scale.toFixed(2)}`;
}

function paintOverlay(pixelRatio: number): void {
    const context = overlay.getContext("2d");
    if (!context) return;
    const dark = isDark();
    const ink = dark ? "#f2f2f2" : "#1b1e23";
    const paper = dark ? "#16191e" : "#ffffff";
    context.clearRect(0, 0, overlay.width, overlay.height);
    context.lineCap = "round";
    if (drawLinks.checked) {
        for (const link of links) {
            if (link.says === "unsure") continue;
            const same = link.says === "same";
            context.beginPath();
            context.moveTo(...scatter.at(link.i));
            context.lineTo(...scatter.at(link.j));
            context.setLineDash(same ? [] : [5 * pixelRatio, 5 * pixelRatio]);
            const wide = link.wrong !== null && link.wrong >= 0.5 ? 3 : same ? 1.6 : 1.1;
            const colour = same ? (dark ? "#7cc0f5" : "#0b5c99") : dark ? "#ff9d85a0" : "#b3361ea0";
            for (const [stroke, width] of [[`${paper}90`, wide + 2], [colour, wide]] as [string, number][]) {
                context.lineWidth = width * pixelRatio;
                context.strokeStyle = stroke;
                context.stroke();
            }
        }
        context.setLineDash([]);
    }
    context.font = `600 ${12.5 * pixelRatio}px system-ui, sans-serif`;
    context.textAlign = "center";
    context.textBaseline = "middle";
    context.lineJoin = "round";
    for (const centre of centres.slice(0, 40)) {
        const [x, y] = scatter.toScreen(centre.x, centre.y);
        context.lineWidth = 4 * pixelRatio;
        context.strokeStyle = paper;
        context.strokeText(String(centre.cluster), x, y);
        context.fillStyle = ink;
        context.fillText(String(centre.cluster), x, y);
    }
    for (const row of chosen) {
        const [x, y] = scatter.at(row);
        const r = scatter.radius(pixelRatio) + 5 * pixelRatio;
        for (const [colour, wide] of [[paper, 5], [ink, 2.2]] as [string, number][]) {
            context.beginPath();
            context.arc(x, y, r, 0, 2 * Math.PI);
            context.lineWidth = wide * pixelRatio;
            context.strokeStyle = colour;
            context.stroke();
        }
    }
    if (lasso.length > 1) {
        context.beginPath();
        lasso.forEach(([x, y], k) => (k ? context.lineTo(...scatter.toScreen(x, y)) : context.moveTo(...scatter.toScreen(x, y))));
        context.closePath();
        context.fillStyle = dark ? "#ffffff22" : "#00000014";
        context.fill();
        context.lineWidth = 1.5 * pixelRatio;
        context.strokeStyle = ink;
        context.stroke();
    }
    if (overlay.matches(":focus-visible")) {
        const [x, y] = [overlay.width / 2, overlay.height / 2];
        const arm = 9 * pixelRatio;
        context.beginPath();
        context.moveTo(x - arm, y);
        context.lineTo(x + arm, y);
        context.moveTo(x, y - arm);
        context.lineTo(x, y + arm);
        context.lineWidth = 1.5 * pixelRatio;
        context.strokeStyle = ink;
        context.stroke();
    }
}

function zoom(factor: number, px = points.width / 2, py = points.height / 2): void {
    const [x, y] = scatter.toData(px, py);
    const { view } = scatter;
    view.scale = Math.min(2e6, Math.max(20, view.scale * factor));
    const [nowX, nowY] = scatter.toData(px, py);
    view.x += x - nowX;
    view.y += y - nowY;
    redraw();
}

function move(dx: number, dy: number): void {
    scatter.view.x -= dx / scatter.view.scale;
    scatter.view.y += dy / scatter.view.scale;
    redraw();
}

function showAll(): void {
    scatter.fit();
    redraw();
}

// Pointers: one drags or draws, two pinch.
const pointers = new Map<number, [number, number]>();
let dragged = 0;
const local = (event: PointerEvent | WheelEvent): [number, number] => {
    const box = overlay.getBoundingClientRect();
    return [(event.clientX - box.left) * ratio(), (event.clientY - box.top) * ratio()];
};

overlay.addEventListener("pointerdown", (event) => {
    if (event.button !== 0) return;
    overlay.setPointerCapture(event.pointerId);
    const place = local(event);
    pointers.set(event.pointerId, place);
    dragged = 0;
    lasso = mode !== "move" && pointers.size === 1 ? [scatter.toData(...place)] : [];
});
overlay.addEventListener("pointermove", (event) => {
    const before = pointers.get(event.pointerId);
    if (!before) return;
    const now = local(event);
    const [dx, dy] = [now[0] - before[0], now[1] - before[1]];
    dragged += Math.hypot(dx, dy);
    if (pointers.size === 2) {
        const other = [...pointers].find(([id]) => id !== event.pointerId)?.[1] ?? now;
        const apart = (place: [number, number]): number => Math.max(1, Math.hypot(place[0] - other[0], place[1] - other[1]));
        const middle: [number, number] = [(now[0] + other[0]) / 2, (now[1] + other[1]) / 2];
        zoom(apart(now) / apart(before), ...middle);
        move(dx / 2, dy / 2);
    } else if (mode === "move") {
        move(dx, dy);
    } else {
        lasso.push(scatter.toData(...now));
        redraw();
    }
    pointers.set(event.pointerId, now);
});
const lift = (event: PointerEvent): void => {
    if (!pointers.delete(event.pointerId)) return;
    const line = lasso;
    lasso = [];
    if (dragged < 4 * ratio()) {
        const row = scatter.nearest(...local(event), 14 * ratio());
        if (row >= 0) void choose(row, false);
        else forget();
    } else if (mode !== "move" && line.length > 2) {
        join(mode === "first" ? 1 : 2, scatter.within(line));
    }
    redraw();
};
overlay.addEventListener("pointerup", lift);
overlay.addEventListener("pointercancel", (event) => {
    pointers.delete(event.pointerId);
    lasso = [];
    redraw();
});
overlay.addEventListener(
    "wheel",
    (event) => {
        event.preventDefault();
        const lines = event.deltaMode === 1 ? 16 : 1;
        zoom(Math.exp(-Math.max(-240, Math.min(240, event.deltaY * lines)) * 0.0025), ...local(event));
    },
    { passive: false },
);
overlay.addEventListener("focus", () => redraw());
overlay.addEventListener("blur", () => redraw());
new ResizeObserver(() => redraw()).observe(stage);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
    drawLegend();
    redraw();
});

function join(which: 1 | 2, rows: number[]): void {
    scatter.setGroup(which, rows);
    announce(`${count(rows.length, "row")} put into group ${which === 1 ? "A" : "B"}`);
    drawGroups();
    redraw();
}

function drawGroups(): void {
    const [a, b] = [scatter.rowsOf(1), scatter.rowsOf(2)];
    const line = (which: 1 | 2, rows: number[]): HTMLElement =>
        el(
            "p",
            { class: "group-line" },
            el("span", { class: `group-mark g${which}`, "aria-hidden": "true" }, which === 1 ? "A" : "B"),
            el("span", {}, `Group ${which === 1 ? "A" : "B"}: ${count(rows.length, "row")}`),
            rows.length > 0 &&
                el(
                    "button",
                    {
                        type: "button",
                        class: "quiet small",
                        click: () => {
                            scatter.clearGroup(which);
                            drawGroups();
                            redraw();
                        },
                    },
                    "Clear",
                ),
        );
    const say = (relation: "together" | "apart", text: string, ready: boolean): HTMLElement =>
        el(
            "button",
            { type: "button", class: relation === "together" ? "same" : "different", disabled: !ready, click: () => void tellGroups(relation) },
            text,
        );
    fill(
        groupBox,
        el("h2", {}, "Two groups"),
        a.length + b.length === 0
            ? el("p", { class: "muted" }, "Draw a line around points with Lasso A and Lasso B, or add the chosen row or a cluster. Then say whether the groups belong together.")
            : null,
        line(1, a),
        line(2, b),
        el(
            "div",
            { class: "row-of-buttons" },
            say("together", "= Together", a.length + b.length > 1),
            say("apart", "≠ Apart", a.length > 0 && b.length > 0),
        ),
    );
}

async function tellGroups(relation: "together" | "apart"): Promise<void> {
    const drawn = ticket();
    const [first = [], second = []] = [scatter.rowsOf(1), scatter.rowsOf(2)].filter((rows) => rows.length);
    const reply = await attempt(() => api.groups(relation, first, second, annotator()));
    if (!reply) return;
    take(reply.state, drawn);
    const sign = relation === "together" ? " = " : " ≠ ";
    const said = reply.ids.map((pair) => pair.join(sign)).join("; ");
    notice(`${count(reply.added, "new answer")} for the groups: ${said}. Each can be taken back.`, "good");
    scatter.clearGroup(1);
    scatter.clearGroup(2);
    drawGroups();
    redraw();
    void poll();
}

function forget(): void {
    chosen = [];
    about = null;
    drawDetail();
    redraw();
}

async function choose(row: number, centre: boolean): Promise<void> {
    if (!Number.isInteger(row) || row < 0 || row >= (state()?.n_rows ?? 0)) {
        notice(`There is no row ${row}; rows are numbered from 0 to ${(state()?.n_rows ?? 1) - 1}.`);
        return;
    }
    chosen = [row];
    if (centre && scatter.n) {
        [scatter.view.x, scatter.view.y] = [scatter.positions[2 * row] as number, scatter.positions[2 * row + 1] as number];
    }
    redraw();
    const found = await attempt(() => api.row(row));
    if (!found || chosen[0] !== row) return;
    about = found;
    drawDetail();
}

function drawDetail(): void {
    if (!about) {
        fill(detail, el("h2", {}, "Chosen row"), el("p", { class: "muted" }, "Click a point to see its record, its cluster and why."));
        return;
    }
    const { record, probabilities, why, links: touching } = about;
    const add = (which: 1 | 2): HTMLElement =>
        el("button", { type: "button", class: "small", click: () => join(which, [record.row]) }, `Add to group ${which === 1 ? "A" : "B"}`);
    fill(
        detail,
        el("h2", {}, record.id),
        record.cluster !== null && el("p", {}, clusterChip(record.cluster)),
        probabilities.length > 0 &&
            el(
                "ul",
                { class: "chances", "aria-label": "Probability of each cluster" },
                ...probabilities.map(({ cluster, p }) =>
                    el("li", {}, el("span", {}, clusterName(cluster)), bar(p, cluster), el("span", { class: "number" }, percent(p))),
                ),
            ),
        why.length > 0 && el("h3", {}, "Why?"),
        why.length > 0 && el("ul", { class: "why" }, ...why.map((line) => el("li", {}, line))),
        el("h3", {}, "Record"),
        single(record),
        touching.length > 0 && el("h3", {}, "Answers about it"),
        touching.length > 0 && el("ul", { class: "answers" }, ...touching.map((link) => answerLine(link))),
        el("div", { class: "row-of-buttons" }, add(1), add(2)),
    );
}

function drawLegend(): void {
    fill(
        legend,
        ...centres.map(({ cluster, size }) =>
            el(
                "li",
                {},
                el(
                    "button",
                    {
                        type: "button",
                        class: "quiet",
                        "aria-pressed": String(scatter.loud === cluster),
                        click: (event: Event) => {
                            scatter.loud = scatter.loud === cluster ? -1 : cluster;
                            legend.querySelectorAll("[aria-pressed]").forEach((button) => button.setAttribute("aria-pressed", "false"));
                            (event.currentTarget as Element).setAttribute("aria-pressed", String(scatter.loud === cluster));
                            redraw();
                        },
                    },
                    swatch(cluster),
                    el("span", {}, clusterName(cluster)),
                    el("span", { class: "number muted" }, size.toLocaleString("en")),
                ),
                ...([1, 2] as const).map((which) =>
                    el(
                        "button",
                        {
                            type: "button",
                            class: "quiet small",
                            "aria-label": `Add ${clusterName(cluster)} to group ${which === 1 ? "A" : "B"}`,
                            title: `Add ${clusterName(cluster)} to group ${which === 1 ? "A" : "B"}`,
                            click: () => {
                                const rows: number[] = [];
                                scatter.labels.forEach((label, row) => label === cluster && rows.push(row));
                                join(which, rows);
                            },
                        },
                        which === 1 ? "A" : "B",
                    ),
                ),
            ),
        ),
    );
}

async function loadEmbedding(name: string): Promise<void> {
    status.textContent = "Loading the view …";
    const positions = await attempt(() => api.embedding(name));
    status.textContent = "";
    if (!positions) return;
    const same = loaded === name;
    loaded = name;
    scatter.setPositions(positions);
    fitted = fitted && same;
    recount();
}

function recount(): void {
    centres = scatter.centres().sort((a, b) => b.size - a.size);
    drawLegend();
    redraw();
}

async function refresh(now: State): Promise<void> {
    if (labelled !== now.model_version || scatter.labels.length !== now.n_rows) {
        const version = now.model_version;
        const labels = await attempt(() => api.labels());
        if (labels) {
            labelled = version;
            scatter.setLabels(labels);
            if (!labels.includes(scatter.loud)) scatter.loud = -1;
            recount();
            // The plane that tells clusters apart is another one for other clusters.
            if (loaded === "discriminant") await loadEmbedding(loaded);
        }
    }
    const all = await attempt(() => api.answers());
    if (all) links = all;
    if (chosen.length === 1 && chosen[0] !== undefined) void choose(chosen[0], false);
    redraw();
}

async function open(): Promise<void> {
    const list = await attempt(() => api.embeddings());
    if (list && !choice.options.length) {
        fill(choice, ...list.map((entry: Embedding) => el("option", { value: entry.name }, entry.title)));
    }
    if (!loaded && choice.value) await loadEmbedding(choice.value);
    const now = state();
    if (now) await refresh(now);
    if (pending.length) {
        chosen = pending;
        pending = [];
        about = null;
        drawDetail();
        focusOn(chosen);
    }
}

/** Bring some rows into view, with air around them. */
function focusOn(rows: number[]): void {
    if (!scatter.n) return;
    const places = rows.map((row) => [scatter.positions[2 * row] as number, scatter.positions[2 * row + 1] as number] as const);
    const middle = (k: 0 | 1): number => places.reduce((sum, place) => sum + place[k], 0) / places.length;
    [scatter.view.x, scatter.view.y] = [middle(0), middle(1)];
    fitted = true;
    redraw();
}

/** Show some rows when the room opens next. */
export function showRows(rows: number[]): void {
    pending = rows;
    walk.to("see");
}

export const seeRoom: Room = {
    name: "see",
    root,
    show() {
        seen = true;
        setMode(mode);
        drawGroups();
        drawDetail();
        redraw();
        void open();
    },
    hide() {
        seen = false;
    },
    update(now, before) {
        if (!seen) return;
        if (!before || before.version !== now.version || before.model_version !== now.model_version) void refresh(now);
    },
    key(event) {
        const key = pressed(event);
        const wanted = MODES.find((entry) => entry.key === key);
        if (wanted) {
            setMode(wanted.mode);
            return true;
        }
        if (key === "+" || key === "=") zoom(1.4);
        else if (key === "-") zoom(1 / 1.4);
        else if (key === "0") showAll();
        else if (active() !== overlay) return false;
        else if (key === "ArrowLeft") move(60, 0);
        else if (key === "ArrowRight") move(-60, 0);
        else if (key === "ArrowUp") move(0, 60);
        else if (key === "ArrowDown") move(0, -60);
        else if (key === "Escape") forget();
        else if (key === "Enter") {
            const row = scatter.nearest(points.width / 2, points.height / 2, Math.max(points.width, points.height));
            if (row >= 0) void choose(row, false);
        } else return false;
        return true;
    },
};

export const repaint = (): void => {
    drawLegend();
    redraw();
};

// Room 4: what is believed about the classes, and the classes that follow from it.
import { api, type Belief, type Beliefs, type Run } from "./api";
import { active, announce, el, fill, notice, pressed } from "./dom";
import type { Room } from "./room";
import { attempt, state } from "./store";

interface Choice {
    belief: Belief;
    key: string;
    text: string;
    hint: string;
}
const WITHIN: Choice[] = [
    { belief: "keep", key: "k", text: "Keep", hint: "it is one class" },
    { belief: "unsure", key: "u", text: "Not sure", hint: "the data decide" },
    { belief: "split", key: "s", text: "Split", hint: "it is several classes" },
];
const BETWEEN: Choice[] = [
    { belief: "apart", key: "a", text: "Apart", hint: "they are two classes" },
    { belief: "unsure", key: "u", text: "Not sure", hint: "the data decide" },
    { belief: "merge", key: "m", text: "Merge", hint: "they are one class" },
];

const grid = el("div", { class: "heat-box" });
const menu = el("div", { class: "menu", popover: "auto", role: "menu", "aria-label": "What do you believe?" });
const runBox = el("section", { class: "card", "aria-label": "New classes" });
const root = el(
    "section",
    { class: "room classes", "aria-labelledby": "classes-title" },
    el("h1", { id: "classes-title", tabindex: "-1" }, "Classes"),
    el("div", { class: "two" }, el("section", { class: "card", "aria-label": "Beliefs" }, grid), runBox),
    menu,
);

let told: Beliefs | null = null;
let run: Run | null = null;
let cursor: [number, number] = [0, 0];
let seen = false;
let timer = 0;
let starting = false;
let saving: Promise<unknown> = Promise.resolve();

/** With so many classes or fewer, there is room for words in the fields. */
const ROOMY = 7;

const choices = (i: number, j: number): Choice[] => (i === j ? WITHIN : BETWEEN);

/** The word for a belief: its sign, and on the diagonal also how weak it is. */
function word(i: number, j: number, value: number): string {
    if (Math.abs(value) < 0.005) return "not sure";
    if (i === j) return value > 0 ? (value < 0.35 ? "may be several" : "keep") : "split";
    return value > 0 ? (value < 0.35 ? "may be one" : "merge") : "apart";
}
const SIGN: Record<string, string> = { "not sure": "?", keep: "1", "may be several": "1?", split: "÷", merge: "∪", "may be one": "∪?", apart: "≠" };
const signed = (value: number): string => (value < 0 ? `−${Math.abs(value)}` : String(value));

function cellName(i: number, j: number): string {
    const [a, b] = [told?.classes[i] ?? "", told?.classes[j] ?? ""];
    return i === j ? a : `${a} and ${b}`;
}

function heat(cell: HTMLElement, value: number): void {
    // Blue: together, red: apart, as in the reports; strength by opacity over the paper, so both themes work.
    const strength = Math.min(1, Math.abs(value));
    cell.style.setProperty("--strength", `${Math.round(12 + 78 * strength)}%`);
    cell.classList.toggle("together", value > 0.005);
    cell.classList.toggle("apart", value < -0.005);
    cell.classList.toggle("strong", strength > 0.55);
}

function drawGrid(): void {
    if (!told) return;
    const { classes, counts, beliefs } = told;
    const focused = grid.contains(active());
    const head = el("tr", {}, el("td", {}), ...classes.map((name) => el("th", { scope: "col", class: "turned" }, el("span", { title: name }, name))));
    const rows = classes.map((name, i) =>
        el(
            "tr",
            {},
            el("th", { scope: "row" }, el("span", { class: "class-name", title: name }, name), el("span", { class: "muted number" }, (counts[i] ?? 0).toLocaleString("en"))),
            ...classes.map((_, j) => {
                const value = beliefs[i]?.[j] ?? 0;
                const meaning = word(i, j, value);
                const cell = el(
                    "button",
                    {
                        type: "button",
                        class: i === j ? "cell own" : "cell",
                        tabindex: i === cursor[0] && j === cursor[1] ? "0" : "-1",
                        "data-cell": `${i} ${j}`,
                        "aria-haspopup": "menu",
                        "aria-label": `${cellName(i, j)}: ${meaning}, ${signed(value)}`,
                        title: `${cellName(i, j)}: ${meaning} (${signed(value)})`,
                        click: () => openMenu(i, j),
                        focus: () => (cursor = [i, j]),
                    },
                    el("span", { class: "glyph" }, SIGN[meaning] ?? ""),
                    el("span", { class: "word" }, meaning),
                );
                heat(cell, value);
                return el("td", {}, cell);
            }),
        ),
    );
    fill(
        grid,
        el("h2", {}, "What do you believe?"),
        el("p", { class: "muted" }, "Click a field, or go there with the arrow keys and press a letter: K keep, S split, M merge, A apart, U not sure."),
        el("div", { class: "scroll" }, el("table", { class: classes.length <= ROOMY ? "heat roomy" : "heat", "aria-label": "Beliefs about classes" }, el("thead", {}, head), el("tbody", {}, ...rows))),
        el(
            "p",
            { class: "key" },
            ...(
                [
                    ["own together strong", "1", "keep"],
                    ["own apart strong", "÷", "split"],
                    ["together strong", "∪", "merge"],
                    ["apart strong", "≠", "apart"],
                    ["", "?", "not sure"],
                ] as const
            ).map(([kind, sign, text]) => el("span", {}, el("span", { class: `cell sample ${kind}`, "aria-hidden": "true" }, sign), text)),
        ),
    );
    if (focused) focusCell();
}

function focusCell(): void {
    const [i, j] = cursor;
    const cell = grid.querySelector<HTMLElement>(`[data-cell="${i} ${j}"]`);
    grid.querySelectorAll("[data-cell]").forEach((other) => other.setAttribute("tabindex", other === cell ? "0" : "-1"));
    cell?.focus();
}

function openMenu(i: number, j: number): void {
    cursor = [i, j];
    const cell = grid.querySelector<HTMLElement>(`[data-cell="${i} ${j}"]`);
    if (!cell) return;
    fill(
        menu,
        el("p", { class: "menu-title" }, cellName(i, j)),
        ...choices(i, j).map((choice) =>
            el(
                "button",
                { type: "button", role: "menuitem", class: "quiet", "data-belief": choice.belief, click: () => void believe(choice.belief) },
                el("kbd", {}, choice.key.toUpperCase()),
                el("span", {}, choice.text),
                el("span", { class: "muted" }, choice.hint),
            ),
        ),
    );
    menu.showPopover();
    const box = cell.getBoundingClientRect();
    const left = Math.max(8, Math.min(box.left, window.innerWidth - menu.offsetWidth - 8));
    const below = box.bottom + 6;
    menu.style.left = `${left}px`;
    menu.style.top = `${below + menu.offsetHeight > window.innerHeight - 8 ? Math.max(8, box.top - menu.offsetHeight - 6) : below}px`;
    menu.querySelector<HTMLElement>("button")?.focus();
}

async function believe(belief: Belief): Promise<void> {
    const [i, j] = cursor;
    if (menu.matches(":popover-open")) menu.hidePopover();
    const reply = attempt(() => api.believe(i, j, belief));
    saving = Promise.all([saving, reply]);
    const next = await reply;
    if (!next) return;
    took(next);
    announce(`${cellName(i, j)}: ${belief}`);
    focusCell();
}

async function load(): Promise<void> {
    const reply = attempt(() => api.beliefs());
    saving = Promise.all([saving, reply]);
    const next = await reply;
    if (next) took(next);
}

function took(next: Beliefs): void {
    told = next;
    cursor = [Math.min(cursor[0], next.classes.length - 1), Math.min(cursor[1], next.classes.length - 1)];
    drawGrid();
    follow(next.run);
}

function follow(next: Run): void {
    const before = run;
    run = next;
    window.clearTimeout(timer);
    if (!before || JSON.stringify(before) !== JSON.stringify(next)) drawRun();
    if (next.status === "running" && seen) {
        timer = window.setTimeout(() => {
            void attempt(() => api.run()).then((later) => {
                if (later) follow(later);
            });
        }, 400);
    }
    if (before?.status === "running" && next.status === "done") announce("The proposal is ready.");
}

async function start(): Promise<void> {
    if (starting) return;
    starting = true;
    // A belief that is still on its way belongs to the run, and its reply would tell of no run.
    await saving;
    const reply = await attempt(() => api.startRun());
    starting = false;
    if (reply) follow(reply.run);
}

async function accept(): Promise<void> {
    const reply = await attempt(() => api.accept());
    if (!reply) return;
    notice(`Accepted. The new labels are in ${reply.labels_file}.`, "good");
    await load();
}

function drawRun(): void {
    if (!run) return;
    const running = run.status === "running";
    const bar = el("progress", { "aria-label": "Progress", max: "1", value: typeof run.progress === "number" ? run.progress : null });
    const changes = [...(run.splits ?? []), ...(run.merges ?? [])];
    const list = (lines: string[]): HTMLElement => el("ul", {}, ...lines.map((line) => el("li", {}, line)));
    fill(
        runBox,
        el("h2", {}, "New classes"),
        el("p", { class: "muted" }, "The proposal follows your beliefs where the data allow it."),
        el(
            "button",
            { type: "button", class: "primary", id: "run-classes", disabled: running, click: () => void start() },
            running ? "Working …" : run.status === "done" ? "Propose again" : "Propose new classes",
        ),
        running && el("p", { class: "progress-line" }, bar, el("span", {}, run.iteration ? `step ${run.iteration}` : "starting")),
        !!run.message && el("p", { class: run.status === "failed" ? "tag warn block" : "muted" }, run.message),
        run.status === "done" &&
            el(
                "div",
                { class: "proposal", id: "proposal" },
                run.stale && el("p", { class: "tag warn block" }, "You have changed a belief since then: propose again to see the effect."),
                el("h3", {}, "What changes"),
                changes.length ? list(changes) : el("p", {}, "Nothing: every class stays as it is."),
                changes.length > 0 && (run.kept?.length ?? 0) > 0 && el("details", {}, el("summary", {}, `What stays (${run.kept?.length})`), list(run.kept ?? [])),
                run.table ? contingency(run.table) : null,
                el(
                    "div",
                    { class: "row-of-buttons" },
                    el("button", { type: "button", class: "primary", id: "accept-classes", click: () => void accept() }, "Accept this proposal"),
                    el("a", { class: "button", href: "/api/export/classes.csv", download: "classes.csv" }, "New labels"),
                    el("a", { class: "button", href: "/api/export/classes.html", download: "classes.html" }, "Report"),
                ),
                !!run.accepted && el("p", { class: "hint" }, `Accepted; the new labels are in ${run.accepted}.`),
            ),
        (run.lines?.length ?? 0) > 0 &&
            el("details", {}, el("summary", {}, "All details"), el("pre", { class: "log", tabindex: "0" }, (run.lines ?? []).join("\n"))),
    );
}

function contingency(table: NonNullable<Run["table"]>): HTMLElement {
    const largest = Math.max(1, ...table.counts.flat());
    return el(
        "div",
        { class: "scroll" },
        el(
            "table",
            { class: "counts" },
            el("caption", {}, `Rows of each old class (${table.old.length}) in each new one (${table.new.length})`),
            el("thead", {}, el("tr", {}, el("td"), ...table.new.map((name) => el("th", { scope: "col" }, name)))),
            el(
                "tbody",
                {},
                ...table.old.map((name, i) =>
                    el(
                        "tr",
                        {},
                        el("th", { scope: "row" }, name),
                        ...table.new.map((_, j) => {
                            const n = table.counts[i]?.[j] ?? 0;
                            const cell = el("td", { class: n ? "number" : "number none" }, n ? n.toLocaleString("en") : "·");
                            cell.style.setProperty("--strength", `${Math.round((45 * n) / largest)}%`);
                            return cell;
                        }),
                    ),
                ),
            ),
        ),
    );
}

export const classesRoom: Room = {
    name: "classes",
    root,
    show() {
        seen = true;
        if (state()?.has_classes) void load();
        else fill(grid, el("h2", {}, "There are no classes yet"), el("p", {}, "Start the workbench with the column that holds the class of each row: "), el("pre", {}, "linkwise workbench data.csv --label class"));
        runBox.hidden = !state()?.has_classes;
    },
    hide() {
        seen = false;
        window.clearTimeout(timer);
    },
    update(now, before) {
        if (!seen) return;
        runBox.hidden = !now.has_classes;
        if (now.has_classes && (!before || before.version !== now.version)) void load();
    },
    key(event) {
        const key = pressed(event);
        if (menu.matches(":popover-open")) {
            const items = [...menu.querySelectorAll<HTMLElement>("button")];
            const place = items.indexOf(active() as HTMLElement);
            const choice = choices(...cursor).find((entry) => entry.key === key);
            if (choice) void believe(choice.belief);
            else if (key === "ArrowDown") items[(place + 1) % items.length]?.focus();
            else if (key === "ArrowUp") items[(place + items.length - 1) % items.length]?.focus();
            else return false;
            return true;
        }
        if (!told || !grid.contains(active())) return false;
        const last = told.classes.length - 1;
        const [i, j] = cursor;
        const steps: Record<string, [number, number]> = {
            ArrowUp: [Math.max(0, i - 1), j],
            ArrowDown: [Math.min(last, i + 1), j],
            ArrowLeft: [i, Math.max(0, j - 1)],
            ArrowRight: [i, Math.min(last, j + 1)],
            Home: [i, 0],
            End: [i, last],
        };
        const step = steps[key];
        if (step) {
            cursor = step;
            focusCell();
            return true;
        }
        const choice = choices(i, j).find((entry) => entry.key === key);
        if (!choice || event.repeat) return false;
        void believe(choice.belief);
        return true;
    },
};


// The frame around the rooms: head, keys, the name of who answers.
import { answerRoom, renamed } from "./answer";
import { classesRoom } from "./classes";
import { doubtRoom } from "./doubt";
import { byId, el, fill, icon, memory, shell, typing } from "./dom";
import { applyTheme, keepRoom, keysWanted } from "./keep";
import { walk, type Room } from "./room";
import { seeRoom } from "./see";
import { onState, poll } from "./store";

const ROOMS: { room: Room; text: string; drawing: string[] }[] = [
    { room: answerRoom, text: "Answer", drawing: ["M3 5h7v14H3z", "M14 5h7v14h-7z"] },
    { room: seeRoom, text: "See", drawing: ["M6 8h.01", "M11 5h.01", "M17 9h.01", "M8 14h.01", "M14 16h.01", "M19 18h.01", "M5 19h.01"] },
    { room: doubtRoom, text: "Doubt", drawing: ["M12 4 2.5 20h19z", "M12 10v4", "M12 17h.01"] },
    { room: classesRoom, text: "Classes", drawing: ["M4 4h16v16H4z", "M4 12h16", "M12 4v16"] },
    { room: keepRoom, text: "Keep", drawing: ["M12 4v11", "M7 11l5 5 5-5", "M4 20h16"] },
];

const nav = el("nav", { id: "rooms", "aria-label": "Rooms" });
const main = el("main", { id: "main", tabindex: "-1" });
const name = el("input", {
    id: "annotator",
    list: "annotators",
    maxlength: "80",
    autocomplete: "off",
    spellcheck: "false",
    placeholder: "optional",
});
shell.append(
    el("button", { type: "button", class: "skip", click: () => main.focus() }, "Skip to the content"),
    el(
        "header",
        {},
        el(
            "div",
            { class: "brand" },
            mark(),
            el("span", { class: "word" }, "linkwise"),
            el("span", { id: "data-title" }),
        ),
        nav,
        el("div", { class: "person" }, el("label", { for: "annotator" }, "Your name"), name, el("datalist", { id: "annotators" })),
    ),
    el("div", { id: "away", role: "alert", hidden: true }),
    el("div", { id: "notice", role: "status", hidden: true }),
    main,
    el("div", { id: "live", class: "unseen", role: "status", "aria-live": "polite" }),
);

/** Two linked rows. */
function mark(): SVGSVGElement {
    const drawing = icon("M11 11 21 21", "M11 6a5 5 0 1 0 .01 0z", "M21 16a5 5 0 1 0 .01 0z");
    drawing.setAttribute("viewBox", "0 0 32 32");
    drawing.setAttribute("class", "logo");
    return drawing;
}

const badges = new Map<string, HTMLElement>();
let here: Room = answerRoom;

for (const [k, { room, text, drawing }] of ROOMS.entries()) {
    const badge = el("span", { class: "badge", hidden: true });
    badges.set(room.name, badge);
    nav.append(
        el("a", { href: `#${room.name}`, "data-room": room.name, "aria-keyshortcuts": `Alt+${k + 1}` }, icon(...drawing), el("span", {}, text), badge),
    );
    room.root.hidden = true;
    main.append(room.root);
}

function enter(wanted: string, focus: boolean): void {
    here.hide();
    here.root.hidden = true;
    here = ROOMS.find(({ room }) => room.name === wanted)?.room ?? answerRoom;
    here.root.hidden = false;
    for (const link of nav.querySelectorAll("a")) {
        if (link.dataset["room"] === here.name) link.setAttribute("aria-current", "page");
        else link.removeAttribute("aria-current");
    }
    here.show();
    if (focus) here.root.querySelector<HTMLElement>("h1")?.focus({ preventScroll: true });
}

name.value = memory.get("annotator") ?? "";
name.addEventListener("input", () => memory.set("annotator", name.value));
name.addEventListener("change", () => void renamed());
name.addEventListener("keydown", (event) => {
    if (event.key === "Enter" || event.key === "Escape") name.blur();
});
window.addEventListener("storage", (event) => {
    if (event.key === "linkwise.annotator") name.value = event.newValue ?? "";
    if (event.key === "linkwise.theme") applyTheme();
});

function press(event: KeyboardEvent): void {
    if (event.altKey && !event.ctrlKey && !event.metaKey) {
        const room = ROOMS[Number(event.key) - 1]?.room;
        if (room) {
            event.preventDefault();
            walk.to(room.name);
        }
        return;
    }
    if (event.ctrlKey || event.metaKey || event.altKey || typing(event.target)) return;
    if (!keysWanted() && event.key.length === 1) return;
    if (event.key === "Enter" && event.target instanceof HTMLElement && event.target.matches("button, a, summary")) return;
    if (here.key?.(event)) event.preventDefault();
}

onState((now) => {
    byId("data-title").textContent = now.title;
    fill(byId("annotators"), ...now.annotators.map((known) => el("option", { value: known })));
    const doubts = badges.get("doubt");
    const n = now.n_doubts + now.n_contradictions;
    if (doubts) {
        doubts.textContent = String(n);
        doubts.hidden = n === 0;
        doubts.setAttribute("aria-label", `${n} to look at`);
    }
});
for (const { room } of ROOMS) onState((now, before) => room.update(now, before));

/** Begin: as a page of its own, whose address names the room, or inside something else. */
export function start(isPage: boolean): void {
    const wanted = (): string => location.hash.slice(1);
    if (isPage) {
        walk.to = (room) => (location.hash = room);
        document.addEventListener("keydown", press);
        window.addEventListener("hashchange", () => {
            window.scrollTo(0, 0);
            enter(wanted(), true);
            document.title = `${ROOMS.find(({ room }) => room === here)?.text ?? ""} · linkwise`;
        });
    } else {
        walk.to = (room) => enter(room, true);
        shell.addEventListener("keydown", press);
        nav.addEventListener("click", (event) => {
            const link = (event.target as Element).closest("a");
            event.preventDefault();
            if (link?.dataset["room"]) walk.to(link.dataset["room"]);
        });
    }
    applyTheme();
    void poll().then(() => enter(isPage ? wanted() : here.name, false));
}

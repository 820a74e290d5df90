// Elements made from text alone: nothing here ever parses HTML or sets a style attribute.

type Handler = (event: never) => void;
type Value = string | number | boolean | null | undefined | Handler;
export type Child = Node | string | null | undefined | false;

/** An element with attributes (functions become listeners) and children; strings become text. */
export function el<K extends keyof HTMLElementTagNameMap>(
    tag: K,
    attributes: Record<string, Value> = {},
    ...children: Child[]
): HTMLElementTagNameMap[K] {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) {
        if (value === null || value === undefined || value === false) continue;
        if (typeof value === "function") element.addEventListener(name, value as unknown as EventListener);
        else element.setAttribute(name, value === true ? "" : String(value));
    }
    element.append(...children.filter((child): child is Node | string => !!child || child === ""));
    return element;
}

export function fill(element: Element, ...children: Child[]): void {
    element.replaceChildren(...children.filter((child): child is Node | string => !!child || child === ""));
}

const SVG = "http://www.w3.org/2000/svg";

/** A drawing of paths on a 24 by 24 field, for the eye only. */
export function icon(...paths: string[]): SVGSVGElement {
    const svg = document.createElementNS(SVG, "svg");
    svg.setAttribute("viewBox", "0 0 24 24");
    svg.setAttribute("class", "icon");
    svg.setAttribute("aria-hidden", "true");
    for (const d of paths) {
        const path = document.createElementNS(SVG, "path");
        path.setAttribute("d", d);
        svg.append(path);
    }
    return svg;
}

/** Everything that is shown, in a page of its own or in a cell of a notebook. */
export const shell = el("div", { class: "shell", tabindex: "-1" });

/** The element that has the focus, also inside a shadow root. */
export const active = (): Element | null => (shell.getRootNode() as Document | ShadowRoot).activeElement ?? null;

export function byId(id: string): HTMLElement {
    const found = shell.querySelector<HTMLElement>(`#${id}`);
    if (!found) throw new Error(`the page has no #${id}`);
    return found;
}

/** Say something to people who listen to the page. */
export function announce(text: string): void {
    const region = byId("live");
    region.textContent = "";
    // A region that changes twice in one task is read only once, or not at all.
    setTimeout(() => (region.textContent = text), 30);
}

let noticeTimer = 0;

/** Show a line to everybody; it goes after a while, an error only when it is closed. */
export function notice(text: string, kind: "error" | "good" = "error"): void {
    const box = byId("notice");
    const close = el("button", { type: "button", class: "quiet small", click: () => (box.hidden = true) }, "Close");
    fill(box, el("span", {}, text), close);
    box.className = kind;
    box.hidden = false;
    window.clearTimeout(noticeTimer);
    if (kind === "good") noticeTimer = window.setTimeout(() => (box.hidden = true), 6000);
}

/** A probability in whole per cent; what is only nearly impossible or certain is not rounded to it. */
export function percent(p: number): string {
    if (p > 0 && p < 0.005) return "< 1 %";
    if (p < 1 && p >= 0.995) return "> 99 %";
    return `${Math.round(100 * p)} %`;
}

export const count = (n: number, one: string, many = `${one}s`): string =>
    `${n.toLocaleString("en")} ${n === 1 ? one : many}`;

/** True where a key is meant for a field and not for the page. */
export function typing(target: EventTarget | null): boolean {
    if (!(target instanceof HTMLElement)) return false;
    if (target instanceof HTMLInputElement) return !["radio", "checkbox", "button"].includes(target.type);
    return target instanceof HTMLTextAreaElement || target instanceof HTMLSelectElement || target.isContentEditable;
}

/** The key that was pressed; a letter in lower case, also with Shift or Caps Lock. */
export const pressed = (event: KeyboardEvent): string => (event.key.length === 1 ? event.key.toLowerCase() : event.key);

/** What this browser remembers; a browser that refuses remembers nothing. */
export const memory = {
    get(key: string): string | null {
        try {
            return localStorage.getItem(`linkwise.${key}`);
        } catch {
            return null;
        }
    },
    set(key: string, value: string): void {
        try {
            localStorage.setItem(`linkwise.${key}`, value);
        } catch {
            // Private windows may refuse.
        }
    },
};

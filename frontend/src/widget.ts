// The same rooms in a cell of a notebook (anywidget). Requests are messages; styles stay inside a shadow root.
import { Away, blobAddress, setTransport, type Delivery } from "./api";
import { shell } from "./dom";
import { start } from "./frame";
import { pictures } from "./record";

/** The style sheet; the build puts it here. */
declare const STYLE: string;

interface Model {
    send(content: unknown): void;
    on(event: "msg:custom", listener: (message: { id: number; status: number; type: string }, buffers: DataView[]) => void): void;
}

/** Milliseconds after which a request counts as lost: the kernel was ended, or is busy with something else. */
const PATIENCE = 60_000;

function listen(model: Model): void {
    const waiting = new Map<number, (reply: Delivery) => void>();
    let last = 0;
    model.on("msg:custom", ({ id, status, type }, [body]) => {
        const bytes = body ? (body.buffer.slice(body.byteOffset, body.byteOffset + body.byteLength) as ArrayBuffer) : new ArrayBuffer(0);
        waiting.get(id)?.({ status, type, bytes });
        waiting.delete(id);
    });
    setTransport(
        (method, path, body) =>
            new Promise((resolve, reject) => {
                const id = ++last;
                waiting.set(id, resolve);
                window.setTimeout(() => waiting.delete(id) && reject(new Away("The notebook does not answer.")), PATIENCE);
                model.send({ id, method, path, body: body ?? null });
            }),
    );
}

// There is no server to load files from: pictures and downloads are fetched as messages.
pictures.show = (image, path) => {
    void blobAddress(path).then(
        (address) => (image.src = address),
        () => image.dispatchEvent(new Event("error")),
    );
};
shell.addEventListener("click", (event) => {
    const link = (event.target as Element).closest<HTMLAnchorElement>("a[href^='/api/']");
    const path = link?.getAttribute("href");
    if (!link || !path) return;
    event.preventDefault();
    void blobAddress(path).then((address) => {
        const copy = document.createElement("a");
        copy.href = address;
        copy.download = link.download || "picture";
        copy.click();
    });
});

let begun = false;

function render({ model, el }: { model: Model; el: HTMLElement }): void {
    const inside = document.createElement("div");
    const root = inside.attachShadow({ mode: "open" });
    const sheet = new CSSStyleSheet();
    sheet.replaceSync(STYLE);
    root.adoptedStyleSheets = [sheet];
    inside.setAttribute("data-lm-suppress-shortcuts", "true");
    // Shown a second time, the page moves to the new cell.
    root.append(shell);
    el.append(inside);
    shell.classList.add("in-notebook");
    // A notebook would take keys as its own commands.
    for (const kind of ["keydown", "keyup", "keypress"]) inside.addEventListener(kind, (event) => event.stopPropagation());
    if (begun) return;
    begun = true;
    listen(model);
    start(false);
}

export default { render };

// Builds the page into src/linkwise/workbench/static. With --check: builds in memory and compares.
// build.json holds a hash of the sources and of each built file; a Python test compares them.
import { createHash } from "node:crypto";
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { buildSync } from "esbuild";

const here = dirname(fileURLToPath(import.meta.url));
const out = join(here, "..", "src", "linkwise", "workbench", "static");
const sha = (bytes) => createHash("sha256").update(bytes).digest("hex");

const sources = ["build.mjs", "package-lock.json", "package.json", "tsconfig.json"]
    .concat(readdirSync(join(here, "src")).map((name) => `src/${name}`))
    .sort();
const all = createHash("sha256");
for (const name of sources) {
    all.update(`${name}\0`).update(readFileSync(join(here, name))).update("\0");
}

const bundle = (entry, options = {}) =>
    buildSync({
        absWorkingDir: here,
        entryPoints: [entry],
        bundle: true,
        minify: true,
        format: "iife",
        target: "es2022",
        charset: "utf8",
        legalComments: "none",
        write: false,
        ...options,
    }).outputFiles[0].contents;

const style = bundle("src/style.css");
// In a notebook the style sheet is inside a shadow root, whose outermost element is :host.
const inside = new TextDecoder().decode(style).replaceAll(":root", ":host");
const built = {
    "app.js": bundle("src/main.ts"),
    "widget.js": bundle("src/widget.ts", { format: "esm", define: { STYLE: JSON.stringify(inside) } }),
    "style.css": style,
    "index.html": readFileSync(join(here, "src", "index.html")),
    "icon.svg": readFileSync(join(here, "src", "icon.svg")),
};
const record = { sources: all.digest("hex"), built: {} };
for (const [name, bytes] of Object.entries(built)) record.built[name] = sha(bytes);
built["build.json"] = JSON.stringify(record, null, 2) + "\n";

if (process.argv.includes("--check")) {
    const stale = Object.entries(built).filter(([name, bytes]) => {
        try {
            return sha(readFileSync(join(out, name))) !== sha(bytes);
        } catch {
            return true;
        }
    });
    if (stale.length) {
        console.error(`${stale.map(([name]) => name).join(", ")}: not built from these sources; run npm run build`);
        process.exit(1);
    }
} else {
    mkdirSync(out, { recursive: true });
    for (const [name, bytes] of Object.entries(built)) writeFileSync(join(out, name), bytes);
    for (const [name, bytes] of Object.entries(built)) console.log(`${name}: ${(bytes.length / 1024).toFixed(1)} KiB`);
}

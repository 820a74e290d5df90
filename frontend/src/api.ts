// What the server answers, and how it is asked.

export type Says = "same" | "different" | "unsure";

export interface Column {
    name: string;
    kind: "number" | "text";
    low?: number | null;
    high?: number | null;
}

export interface State {
    version: number;
    model_version: number;
    n_rows: number;
    title: string;
    /** The folder where answers are kept; null if they are only in memory. */
    session: string | null;
    columns: Column[];
    image_column: string | null;
    text_column: string | null;
    label_column: string | null;
    n_answers: number;
    can_undo: boolean;
    counts: Record<Says, number>;
    annotators: string[];
    n_clusters: number;
    quality: { value: number; low: number; high: number } | null;
    stop: { stop: boolean; reason: string } | null;
    error_rate: number | null;
    refreshing: boolean;
    has_classes: boolean;
    n_doubts: number;
    n_contradictions: number;
    notes?: string[];
    trouble?: string | null;
}

export interface Entry {
    name: string;
    value: string;
    number: boolean;
}

export interface Row {
    row: number;
    id: string;
    values: Entry[];
    image: string | null;
    text: string | null;
    label?: string | null;
    /** Columns that are not among the values. */
    hidden?: number;
    /** Null before the first clusters are there. */
    cluster: number | null;
}

export interface Question {
    done?: false;
    i: number;
    j: number;
    records: [Row, Row];
    differs: string[];
    hidden?: number;
    chance: number | null;
    queue: number;
    reask: boolean;
}

export interface Done {
    done: true;
    reason: string;
}

export interface Reply {
    state: State;
    question: Question | Done;
}

export interface Answer {
    answer: number;
    i: number;
    j: number;
    ids: [string, string];
    says: Says;
    certainty: number | null;
    source: string | null;
    wrong: number | null;
    records?: [Row, Row];
    differs?: string[];
}

export interface Contradiction {
    text: string;
    answers: Answer[];
}

export interface Embedding {
    name: string;
    title: string;
    ready: boolean;
}

export interface About {
    record: Row;
    /** The cluster is null for one that no answer has found yet. */
    probabilities: { cluster: number | null; p: number }[];
    why: string[];
    links: Answer[];
}

export type Belief = "split" | "keep" | "merge" | "apart" | "unsure";

export interface Run {
    status: "none" | "running" | "done" | "failed";
    message?: string;
    iteration?: number;
    progress?: number | null;
    lines?: string[];
    splits?: string[];
    merges?: string[];
    kept?: string[];
    /** The beliefs have changed since. */
    stale?: boolean;
    table?: { old: string[]; new: string[]; counts: number[][] } | null;
    new_names?: string[];
    accepted?: string | null;
}

export interface Beliefs {
    classes: string[];
    counts: number[];
    beliefs: number[][];
    run: Run;
}

/** The server refused a request and said why. */
export class Refused extends Error {
    constructor(
        readonly status: number,
        message: string,
    ) {
        super(message);
    }
}

/** No server answers. */
export class Away extends Error {}

export interface Delivery {
    status: number;
    type: string;
    bytes: ArrayBuffer;
}

/** How requests travel: over HTTP, or as messages of a notebook. Throws `Away` if nobody answers. */
export type Transport = (method: string, path: string, body?: unknown) => Promise<Delivery>;

let transport: Transport = async (method, path, body) => {
    try {
        const response = await fetch(path, {
            method,
            headers: body === undefined ? {} : { "Content-Type": "application/json" },
            body: body === undefined ? null : JSON.stringify(body),
            cache: "no-store",
            credentials: "same-origin",
        });
        return { status: response.status, type: response.headers.get("Content-Type") ?? "", bytes: await response.arrayBuffer() };
    } catch {
        throw new Away("The server does not answer.");
    }
};

export function setTransport(next: Transport): void {
    transport = next;
}

const parsed = (reply: Delivery): unknown => JSON.parse(new TextDecoder().decode(reply.bytes));

async function ask(method: string, path: string, body?: unknown): Promise<Delivery> {
    const reply = await transport(method, path, body);
    if (reply.status < 400) return reply;
    let message = `The server answered ${reply.status}.`;
    try {
        message = (parsed(reply) as { error?: string }).error ?? message;
    } catch {
        // No JSON: the status has to do.
    }
    throw new Refused(reply.status, message);
}

async function json<T>(method: string, path: string, body?: unknown): Promise<T> {
    return parsed(await ask(method, path, body)) as T;
}

const bytes = async (path: string): Promise<ArrayBuffer> => (await ask("GET", path)).bytes;

/** A file of the server as an address inside this page. */
export async function blobAddress(path: string): Promise<string> {
    const reply = await ask("GET", path);
    return URL.createObjectURL(new Blob([reply.bytes], { type: reply.type }));
}

export const api = {
    state: () => json<State>("GET", "/api/state"),
    question: (source: string | null) =>
        json<Question | Done>("GET", `/api/question${source ? `?source=${encodeURIComponent(source)}` : ""}`),
    answer: (i: number, j: number, says: Says, certainty: number | null, source: string | null) =>
        json<Reply>("POST", "/api/answer", { i, j, says, certainty, source }),
    undo: (source: string | null) => json<Reply>("POST", "/api/undo", { source }),
    retract: (answer: Answer, source: string | null) =>
        json<Reply>("POST", "/api/retract", { answer: answer.answer, i: answer.i, j: answer.j, source }),
    answers: (after = 0) => json<Answer[]>("GET", `/api/answers?after=${after}`),
    embeddings: () => json<Embedding[]>("GET", "/api/embeddings"),
    embedding: async (name: string) => new Float32Array(await bytes(`/api/embedding/${encodeURIComponent(name)}`)),
    labels: async () => new Uint16Array(await bytes("/api/labels")),
    row: (row: number) => json<About>("GET", `/api/row/${row}`),
    groups: (relation: "together" | "apart", a: number[], b: number[], source: string | null) =>
        json<{ added: number; ids: [string, string][]; state: State }>("POST", "/api/groups", { relation, a, b, source }),
    doubts: () => json<Answer[]>("GET", "/api/doubts"),
    contradictions: () => json<Contradiction[]>("GET", "/api/contradictions"),
    beliefs: () => json<Beliefs>("GET", "/api/beliefs"),
    believe: (i: number, j: number, belief: Belief) => json<Beliefs>("PUT", "/api/beliefs", { i, j, belief }),
    startRun: () => json<{ run: Run }>("POST", "/api/classes/run", {}),
    run: () => json<Run>("GET", "/api/classes/run"),
    accept: () => json<{ labels_file: string }>("POST", "/api/classes/accept", {}),
};

// The page that the server sends.
import { shell } from "./dom";
import { start } from "./frame";

document.body.append(shell);
start(true);

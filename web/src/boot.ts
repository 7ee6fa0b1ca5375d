/* boot.ts - the first thing that runs: colours, then a moment for what the HTML shows to be painted.
 *
 * The rest of the page comes from the cache before the first frame, and would hold it up by its own work. */
import { themeNow } from "./theme";

window.document.documentElement.dataset.theme = themeNow();

const begin = () => void import("./main");
if (window.document.visibilityState === "hidden") begin(); /* no frames there */
else requestAnimationFrame(() => setTimeout(begin));

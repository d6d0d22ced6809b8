// The live page: rows as they come, at most so many, made of text alone; a pause keeps what comes meanwhile.
"use strict";

const MOST = 200;
const KINDS = { allow: "good", redact: "fair", pseudonymise: "fair", rewrite_span: "fair", remove_message: "fair", require_confirmation: "fair", stop: "bad", reject: "bad" };

function cell(kind, ...inside) {
  const made = document.createElement(kind);
  made.append(...inside);
  return made;
}

function classed(made, name) {
  made.className = name;
  return made;
}

function rowOf(row) {
  const link = cell("a", cell("code", row.stream || "-"));
  const place = row.node ? [row.node, row.chain, row.seq] : [row.chain, row.seq];
  link.href = `/console/exchanges/${place.map(encodeURIComponent).join("/")}`;
  const head = cell("th", link);
  head.scope = "row";
  return cell("tr",
    classed(cell("td", row.time.slice(11, 23)), "when"),
    cell("td", classed(cell("span", row.action), "tag " + (KINDS[row.action] || "plain"))), head,
    cell("td", cell("bdi", row.rules.join(" "))), cell("td", row.outcome), cell("td", cell("bdi", row.route)), classed(cell("td", row.held_ms), "n"), cell("td", cell("bdi", row.notes.join(", "))),
    ...(row.node ? [cell("td", cell("bdi", row.node))] : []));
}

document.addEventListener("DOMContentLoaded", () => {
  const place = document.getElementById("live"), rows = document.getElementById("rows");
  const pause = document.getElementById("pause"), state = document.getElementById("state"), said = document.getElementById("said");
  let paused = false, waiting = [], leftOut = 0, fresh = 0, changed = false, lost = false;

  const show = (kind, text) => { state.className = "tag " + kind; state.textContent = text; };
  const put = (coming) => {
    for (const row of coming) rows.prepend(rowOf(row));
    while (rows.children.length > MOST) rows.lastElementChild.remove();
    if (coming.length) document.getElementById("none").hidden = true;
  };
  const tell = () => {  // at most once a beat: whoever listens to the page must be able to follow
    if (!changed) return;
    changed = false;
    const parts = [paused ? `Paused; ${waiting.length} have come meanwhile.` : `${fresh} came just now.`];
    if (leftOut) parts.push(`${leftOut} more came than can be shown.`);
    if (lost) parts.push("The connection was lost for a moment, so some may be missing.");
    said.textContent = parts.join(" ");
    fresh = leftOut = 0;
    lost = false;
  };

  pause.hidden = false;
  pause.addEventListener("click", () => {
    paused = !paused;
    pause.setAttribute("aria-pressed", String(paused));
    pause.textContent = paused ? "Go on" : "Pause";
    show(paused ? "fair" : "good", paused ? "paused" : "live");
    if (!paused) { put(waiting); waiting = []; }
    changed = true;
    tell();
  });

  const events = new EventSource(place.dataset.events);
  events.addEventListener("open", () => show(paused ? "fair" : "good", paused ? "paused" : "live"));
  events.addEventListener("error", () => {
    lost = changed = true;
    if (events.readyState !== EventSource.CLOSED) return show("fair", "connecting anew");
    show("bad", "ended");
    said.textContent = "This page is not served any more: too many are open, or you are logged out. Load it anew.";
  });
  events.addEventListener("rows", (event) => {
    const coming = JSON.parse(event.data);
    fresh += coming.rows.length;
    leftOut += coming.left_out;
    changed = true;
    if (paused) waiting = waiting.concat(coming.rows).slice(-MOST); else put(coming.rows);
  });
  events.addEventListener("fault", (event) => { show("bad", "the log can't be read"); said.textContent = JSON.parse(event.data); });
  setInterval(tell, 2000);
});

// The editor of a draft: numbers of lines, and what the checker says at its very place. A textarea is a textarea still:
// Tab leads on, undo is the browser's, and whoever has no script saves all the same. No text is ever made into HTML here.
"use strict";

(() => {
  const text = document.getElementById("text");
  const found = document.getElementById("found");
  const program = document.getElementById("program");
  if (!found) return;
  let faults = [];

  function count(value) {
    let lines = 1;
    for (let at = value.indexOf("\n"); at >= 0; at = value.indexOf("\n", at + 1)) lines += 1;
    return lines;
  }

  function number() {
    const gutter = document.querySelector(".editor .lines"), lines = count(text.value);
    if (Number(gutter.dataset.lines) === lines && gutter.dataset.marked === String(faults.map((each) => each.line))) return;
    const marked = new Set(faults.map((each) => each.line));
    gutter.replaceChildren(...Array.from({ length: lines }, (_, at) => {
      const line = document.createElement("span");
      line.textContent = String(at + 1);
      if (marked.has(at + 1)) line.className = "marked";
      return line;
    }));
    gutter.dataset.lines = String(lines);
    gutter.dataset.marked = String(faults.map((each) => each.line));
    follow();
  }

  function follow() {
    document.querySelector(".editor .lines").scrollTop = text.scrollTop;
    const under = document.querySelector(".editor .under");
    under.scrollTop = text.scrollTop;
    under.scrollLeft = text.scrollLeft;
  }

  function underline() {  // the same text once more, unseen, with what is wrong written behind its line
    const under = document.querySelector(".editor .under");
    if (!faults.length) { under.replaceChildren(); return; }
    const lines = text.value.split("\n"), parts = [];
    let from = 0;
    for (const { line, column, says } of faults) {
      if (line < 1 || line > lines.length || line - 1 < from) continue;
      parts.push(lines.slice(from, line - 1).map((each) => each + "\n").join(""));
      const own = lines[line - 1], start = Math.max(Math.min(column - 1, own.length), 0);
      const end = start + Math.max(own.slice(start).search(/[\s,}\]]|$/), 1);
      const mark = document.createElement("span"), told = document.createElement("span");
      mark.className = "wrong";
      mark.textContent = own.slice(start, end) || " ";
      told.className = "told";
      told.textContent = "  ← " + says;
      parts.push(own.slice(0, start), mark, own.slice(end), told, "\n");
      from = line;
    }
    parts.push(lines.slice(from).join("\n"));
    under.replaceChildren(...parts.filter((each) => each !== ""));
    follow();
  }

  function place(line, column) {
    let at = 0;
    for (let n = 1; n < line; n += 1) at = text.value.indexOf("\n", at) + 1 || text.value.length;
    const end = text.value.indexOf("\n", at);
    text.focus();
    text.setSelectionRange(Math.min(at + Math.max(column - 1, 0), end < 0 ? text.value.length : end), end < 0 ? text.value.length : end);
    const height = parseFloat(getComputedStyle(text).lineHeight);
    text.scrollTop = Math.max((line - 5) * height, 0);
    follow();
  }

  function take() {
    faults = Array.from(found.querySelectorAll("[data-line]"), (each) => (
      { line: Number(each.dataset.line), column: Number(each.dataset.column), says: each.dataset.says })).filter((each) => each.line);
    if (text) {
      text.setAttribute("aria-invalid", String(faults.length > 0));
      number();
      underline();
    }
    const summary = found.querySelector("[data-programs]");
    if (!program || !summary) return;
    const names = JSON.parse(summary.dataset.programs), had = Array.from(program.options, (each) => each.value);
    if (!names.length || String(names) === String(had)) return;
    const chosen = program.value;
    program.replaceChildren(...names.map((name) => new Option(name, name, false, name === chosen)));
  }

  document.addEventListener("htmx:afterSwap", (event) => { if (event.detail.target === found) take(); });
  if (!text) return;
  found.addEventListener("click", (event) => {
    const link = event.target.closest("a.place");
    if (!link) return;
    event.preventDefault();
    const { line, column } = link.parentElement.dataset;
    place(Number(line), Number(column));
  });
  text.addEventListener("input", () => { faults = []; number(); underline(); });
  text.addEventListener("scroll", follow, { passive: true });
  text.addEventListener("keydown", (event) => {  // a new line begins where the one before does
    if (event.key !== "Enter" || event.shiftKey || event.ctrlKey || event.metaKey || event.isComposing || text.readOnly) return;
    const before = text.value.slice(0, text.selectionStart), line = before.slice(before.lastIndexOf("\n") + 1);
    const indent = /^ */.exec(line)[0] + (/:\s*$/.test(line) ? "  " : "");
    if (indent && document.execCommand("insertText", false, "\n" + indent)) event.preventDefault();
  });
  addEventListener("beforeunload", (event) => { if (text.value !== text.defaultValue && !text.form.dataset.sent) event.preventDefault(); });
  text.form.addEventListener("submit", () => { text.form.dataset.sent = "1"; });
  number();
})();

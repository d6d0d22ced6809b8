// Proves a record of the audit chain as `checkstream/audit/chain.py` says: hash, links to the next signed head, signature.
// It takes nothing that the server says of them for granted, and what it can't reckon it says.
"use strict";

const hex = (bytes) => Array.from(bytes, (each) => each.toString(16).padStart(2, "0")).join("");
const unhex = (text) => Uint8Array.from(text.match(/../g) || [], (pair) => parseInt(pair, 16));
const unbase64 = (text) => Uint8Array.from(atob(text), (each) => each.charCodeAt(0));
const utf8 = (text) => new TextEncoder().encode(text);

function joined(...parts) {
  const whole = new Uint8Array(parts.reduce((size, part) => size + part.length, 0));
  parts.reduce((at, part) => (whole.set(part, at), at + part.length), 0);
  return whole;
}

async function sha256(...parts) {
  return new Uint8Array(await crypto.subtle.digest("SHA-256", joined(...parts)));
}

function byCodePoint(one, other) {  // JavaScript's own order is that of UTF-16, which differs beyond the first plane
  const a = Array.from(one), b = Array.from(other);
  for (let at = 0; at < Math.min(a.length, b.length); at++) {
    const difference = a[at].codePointAt(0) - b[at].codePointAt(0);
    if (difference) return difference;
  }
  return a.length - b.length;
}

function canonical(value) {
  if (value === null || value === true || value === false || typeof value === "string") return JSON.stringify(value);
  if (typeof value === "number") {
    if (!Number.isSafeInteger(value) || Object.is(value, -0)) throw new Error("a number that no record has");
    return String(value);
  }
  if (Array.isArray(value)) return "[" + value.map(canonical).join(",") + "]";
  const names = Object.keys(value).sort(byCodePoint);
  return "{" + names.map((name) => JSON.stringify(name) + ":" + canonical(value[name])).join(",") + "}";
}

function read(line) {
  const text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(line);
  const value = JSON.parse(text);
  if (canonical(value) !== text) throw new Error("it is not spelled as records are");
  return value;
}

function sentence(text) {
  return text.endsWith("…") ? text : text + ".";
}

async function link(prev, own) {
  return sha256(Uint8Array.of(1), prev, own);
}

async function signed(head, pem) {
  const spki = unbase64(pem.replace(/-----[^-]+-----|\s/g, ""));
  const name = hex(await sha256(spki.slice(-32))).slice(0, 16);
  if (name !== head.key) throw new Error(`it is signed with key ${head.key}, and the key at hand is ${name}`);
  const key = await crypto.subtle.importKey("spki", spki, { name: "Ed25519" }, false, ["verify"]);
  const { sig, ...rest } = head;
  const holds = await crypto.subtle.verify({ name: "Ed25519" }, key, unhex(sig), joined(Uint8Array.of(2), utf8(canonical(rest))));
  if (!holds) throw new Error(`key ${name} has not signed this`);
  return name;
}

async function written(given, tell) {  // the record itself
  const record = read(unbase64(given.line));
  const { hash: said, prev, ...rest } = record;
  const hash = await link(unhex(prev), await sha256(Uint8Array.of(0), utf8(canonical(rest))));
  if (hex(hash) !== said) throw new Error(`what it says hashes to ${hex(hash).slice(0, 16)}…, and not to ${said.slice(0, 16)}…`);
  tell("good", `What the record says has the hash that it says: ${said.slice(0, 16)}…`);
  return [record, hash];
}

async function linked(given, tell) {  // of a record whose content has stayed where it was written, the digest of it
  const record = given.private;
  if (record.prev === null) {
    tell("open", "The record before is not kept any more, so nothing shows that this one follows it.");
    return [record, unhex(record.hash)];
  }
  const hash = await link(unhex(record.prev), unhex(record.digest));
  if (hex(hash) !== record.hash) throw new Error(`its digest and the record before lead to ${hex(hash).slice(0, 16)}…, and not to ${record.hash.slice(0, 16)}…`);
  tell("good", `The digest of its content links to the record before, and gives its hash: ${record.hash.slice(0, 16)}…`);
  return [record, hash];
}

const TAGS = { good: "good", bad: "bad", open: "fair" };
const WORDS = { good: "holds", bad: "does not hold", open: "not known" };

async function prove(place) {
  const steps = place.querySelector(".steps");
  const tell = (state, text) => {
    const item = document.createElement("li"), tag = document.createElement("span");
    tag.className = "tag " + TAGS[state];
    tag.textContent = WORDS[state];
    item.append(tag, " ", text);
    steps.append(item);
  };
  const end = (state, text) => {
    const tag = place.querySelector(".verdict .tag");
    tag.className = "tag " + TAGS[state];
    tag.textContent = WORDS[state];
    place.querySelector("[data-said]").textContent = text;
    place.dataset.state = state;
    place.classList.add(state === "bad" ? "fault-card" : "good-card");
    if (state === "bad") { place.setAttribute("role", "alert"); document.body.classList.add("broken"); }
    if (state === "open") place.classList.remove("good-card");
  };
  if (!globalThis.crypto || !crypto.subtle) {
    return end("open", "Your browser reckons hashes on https and on this machine's own names only. Use the command below.");
  }
  const answer = await fetch(place.dataset.proof, { headers: { accept: "application/json" } });
  if (!answer.ok) return end("open", "The proof can't be had now. Load this page anew.");
  const given = await answer.json();
  let record, hash;
  try {
    const prove = given.private ? linked : written;
    [record, hash] = await prove(given, tell);
  } catch (error) {
    tell("bad", sentence(`The record and its hash: ${error.message}`));
    return end("bad", "This record was changed after it was written. Do not rely on it.");
  }
  if (!given.head && given.gap) return end("open", `From here a browser can't walk to a signed head: ${given.gap}. Use the command below.`);
  if (!given.head) return end("open", "No head has been signed behind this record yet. A running process signs one each second: load this page anew.");
  let head;
  try {
    head = read(unbase64(given.head));
    if (given.gap) throw new Error(given.gap);
    for (const own of given.after) hash = await link(hash, unhex(own));
    if (head.chain !== record.chain) throw new Error("the head is that of another chain");
    if (record.seq + given.after.length !== head.seq) throw new Error(`${given.after.length} records can't lead to number ${head.seq}`);
    if (hex(hash) !== head.hash) throw new Error(`they lead to ${hex(hash).slice(0, 16)}…, and the head says ${head.hash.slice(0, 16)}…`);
    const way = given.after.length === 1 ? "1 record leads" : `${given.after.length} records lead`;
    tell("good", given.after.length ? `${way} from it to the head of ${head.time}, number ${head.seq}.` : `The head of ${head.time} is that of this very record.`);
  } catch (error) {
    tell("bad", sentence(`The way to the next head: ${error.message}`));
    return end("bad", "The log does not lead from this record to what was signed. Something was changed, removed or put in.");
  }
  if (!given.key) {
    tell("open", "The head's signature: this process can't give its public key.");
    return end("open", "The record fits the log. Whether the log's own key has signed it was not checked.");
  }
  try {
    tell("good", `Key ${await signed(head, given.key)} has signed that head.`);
  } catch (error) {
    if (error.name === "NotSupportedError") {
      tell("open", "The head's signature: your browser knows no Ed25519.");
      return end("open", "The record fits the log. Your browser can't check the signature.");
    }
    tell("bad", sentence(`The head's signature: ${error.message}`));
    return end("bad", "The head behind this record is not signed by the log's key.");
  }
  return end("good", given.private ? "It stands in the log as it was signed; what it says has stayed on its node." : "It is what was written: its hash, the way to a signed head, and the signature hold.");
}

document.addEventListener("DOMContentLoaded", () => {
  const place = document.querySelector("[data-proof]");
  if (place) prove(place).catch((error) => {
    place.querySelector("[data-said]").textContent = `It could not be checked: ${error.message}.`;
    place.dataset.state = "open";
  });
});

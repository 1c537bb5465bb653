// Single keys for those who did not switch them off. None sends anything: a key moves the focus, ticks the box of a
// row, or follows an address that stands on the page.
"use strict";
{
  const help = document.getElementById("keys");
  const words = help.dataset;
  const announce = document.getElementById("announce");
  const note = document.getElementById("key-note");
  const inbox = document.querySelector(".brand")?.href ?? "/";
  const search = document.querySelector(".top .search [name=q]");

  // ---- the list that a run was opened from, in this tab ---------------------------------------------
  const rows = [...document.querySelectorAll("tr[data-run]")];
  const link = (row) => row.querySelector("th[scope=row] a");
  const run = location.pathname.match(/^\/runs\/run_[0-9A-Z]+\//)?.[0];
  if (rows.length) {
    const list = { url: location.pathname + location.search, runs: rows.map((row) => link(row).pathname) };
    sessionStorage.setItem("list", JSON.stringify(list));
  }
  const list = JSON.parse(sessionStorage.getItem("list")) ?? { url: inbox, runs: [] };

  // ---- what each key does; a text that it answers says why it did nothing ---------------------------
  const focused = () => document.activeElement?.closest("tr[data-run]");
  function step(by) {
    if (!rows.length) return words.noList;
    const at = rows.indexOf(focused());
    const next = at < 0 ? (by > 0 ? 0 : rows.length - 1) : at + by;
    if (!rows[next]) return by > 0 ? words.lastRow : words.firstRow;
    link(rows[next]).focus();
  }
  function tick() {
    if (!document.querySelector("tr[data-run] [type=checkbox][name=run]")) return words.noBoxes;
    const box = focused()?.querySelector("[type=checkbox][name=run]");
    if (!box) return words.noRow;
    box.click();
  }
  function open(name, missing) {
    const from = rows.length ? focused() : document.body;
    if (!from) return words.noRow;
    if (!from.dataset[name]) return missing;
    location.assign(from.dataset[name]);
  }
  function neighbour(by) {
    if (!run) return words.noRun;
    const at = list.runs.indexOf(run);
    if (at < 0) return words.notListed;
    if (!list.runs[at + by]) return by > 0 ? words.lastRow : words.firstRow;
    location.assign(list.runs[at + by]);
  }
  const has = (name) => Boolean(document.querySelector(`body[data-${name}], tr[data-${name}]`));
  const keys = {
    j: { valid: () => rows.length, act: () => step(1) },
    k: { valid: () => rows.length, act: () => step(-1) },
    x: { valid: () => document.querySelector("tr[data-run] [type=checkbox][name=run]"), act: tick },
    a: { valid: () => has("review"), act: () => open("review", words.noPlan) },
    r: { valid: () => has("reconcile"), act: () => open("reconcile", words.noEffect) },
    u: { valid: () => !rows.length, act: () => rows.length ? words.inList : location.assign(list.url) },
    "[": { valid: () => run && list.runs.includes(run), act: () => neighbour(-1) },
    "]": { valid: () => run && list.runs.includes(run), act: () => neighbour(1) },
    "/": { valid: () => search, act: () => search.focus() },
    "?": { valid: () => true, act: show },
    "g i": { valid: () => true, act: () => location.assign(inbox) },
  };
  function show() {
    for (const item of help.querySelectorAll("[data-key]")) item.hidden = !keys[item.dataset.key].valid();
    help.showModal();
  }
  document.querySelector("[data-keys-help]")?.addEventListener("click", (event) => {
    if (event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    show();
  });

  // ---- pressing them -------------------------------------------------------------------------------
  const typing = "input:not([type=checkbox], [type=radio]), textarea, select, dialog, [contenteditable]";
  let begun = "";
  function tell(text) {
    announce.textContent = "";
    setTimeout(() => { announce.textContent = text; }, 50);
    note.textContent = text;
  }
  addEventListener("keydown", (event) => {
    const held = (event.ctrlKey || event.altKey || event.metaKey) && !event.getModifierState("AltGraph");
    const elsewhere = event.target.closest?.(typing) || document.querySelector("dialog[open]");
    if (held || elsewhere || event.isComposing || event.defaultPrevented) return;
    const name = begun + event.key;
    begun = "";
    if (name === "g" && !event.repeat) {
      begun = "g ";
      setTimeout(() => { begun = ""; }, 1500);
      return;
    }
    if (!Object.hasOwn(keys, name) || (event.repeat && !"jk".includes(name))) return;
    event.preventDefault();
    const why = keys[name].act();
    note.textContent = "";
    if (why) tell(why);
  });
}

// The console's one script. Every page works without it: it adds copying, ages and countdowns by the
// server's clock, submit-once, drafts, focus, and the poll for notices. It never decides anything.
"use strict";
{
  const root = document.documentElement;
  const body = document.body;
  const all = (selector, from = document) => [...from.querySelectorAll(selector)];
  root.dataset.script = "";

  // ---- the server's clock, kept by the poll's Date header ------------------------------------------
  let offset = Date.parse(body.dataset.now) - Date.now();
  const now = () => Date.now() + offset;
  const local = new Intl.DateTimeFormat("en-GB", {
    timeZone: body.dataset.zone || "UTC", hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23",
  });
  const clock = (ms) => local.format(new Date(ms)) + "\u00a0" + (body.dataset.zoneName || "UTC");
  const fill = (text, values) => text.replace(/%\((\w+)\)s/g, (_, name) => values[name]);
  const unit = (name, values) => fill(body.getAttribute("data-unit-" + name), values).replaceAll(" ", "\u00a0");

  function span(ms, exact) {
    const t = Math.max(0, Math.floor(ms / 1000));
    const [d, h, m, s] = [Math.floor(t / 86400), Math.floor(t / 3600), Math.floor(t / 60) % 60, t % 60];
    if (t < 60) return unit("seconds", { s });
    if (t < 3600) return exact && s ? unit("both", { m, s }) : unit("minutes", { m });
    return t < 86400 ? unit("hours", { h, m }) : unit("days", { d, h: h % 24 });
  }
  const put = (node, text) => { if (node.textContent !== text) node.textContent = text; };

  // ---- one polite region, at most one announcement in 10 s -----------------------------------------
  let spoke = -1e9, toSay = "", speaking = 0;
  function say(text) {
    toSay = text;
    clearTimeout(speaking);
    speaking = setTimeout(() => {
      spoke = performance.now();
      document.getElementById("announce").textContent = toSay;
    }, Math.max(50, spoke + 10000 - performance.now()));
  }

  // ---- stepping through a log with the arrow keys, Home and End, while the stepper has the focus ---
  document.getElementById("stepper")?.addEventListener("keydown", (event) => {
    if (event.target.matches("input") || event.ctrlKey || event.metaKey || event.altKey || event.shiftKey) return;
    const link = all("[data-step]", event.currentTarget).find((step) => step.dataset.step === event.key);
    if (!link) return;
    event.preventDefault();
    link.click();
  });

  // ---- a slider says where it is, and goes there once it is let go; its button does so without this script ---
  for (const slider of all("[data-go]")) {
    slider.addEventListener("input", () => put(slider.form.querySelector("output"), slider.value));
    slider.addEventListener("change", () => slider.form.requestSubmit());
  }

  // ---- ages and countdowns -------------------------------------------------------------------------
  let lost = false;
  const warned = new Map();
  function showAge(node) {
    const length = now() - Date.parse(node.dataset.age);
    const words = length < 0 ? fill(body.dataset.unitUntil, { span: span(-length, true) })
      : node.dataset.form === "bare" ? span(length) : fill(body.dataset.unitAgo, { span: span(length) });
    put(node, node.dataset.form === "bare" ? words : `(${words})`);
  }
  function showLeft(node) {
    const left = Date.parse(node.dataset.until) - now();
    put(node, span(left, true));
    const step = left <= 0 ? 0 : left <= 60e3 ? 1 : left <= 300e3 ? 5 : 9;
    const before = warned.get(node);
    warned.set(node, step);
    const warning = node.closest("[data-warn]")?.dataset.warn ?? "%(span)s";
    if (before !== undefined && step < before && step) say(fill(warning, { span: span(left, true) }));
    if (step) return;
    for (const shown of all("[data-when-expired]")) if (shown.hidden) {
      shown.hidden = false;
      say(shown.textContent.trim());
    }
  }
  function tick() {
    if (lost) return;
    all("[data-age]").forEach(showAge);
    all("[data-until]").forEach(showLeft);
  }
  tick();
  setInterval(tick, 1000);

  // ---- copying -------------------------------------------------------------------------------------
  function select(node) {
    const range = document.createRange();
    range.selectNodeContents(node);
    getSelection().removeAllRanges();
    getSelection().addRange(range);
  }
  async function copy(button) {
    const field = button.dataset.copyFrom && document.getElementById(button.dataset.copyFrom);
    let note = button.nextElementSibling;
    if (!note?.classList.contains("copied")) {
      note = document.createElement("span");
      note.className = "copied";
      button.after(note);
    }
    try {
      await navigator.clipboard.writeText(field ? field.value : button.dataset.copy);
      note.textContent = body.dataset.copied;
    } catch {
      field ? field.select() : select(button.previousElementSibling);
      note.textContent = body.dataset.copyFailed;
    }
    say(note.textContent);
  }
  document.addEventListener("click", (event) => {
    const button = event.target.closest("[data-copy], [data-copy-from]");
    if (button) copy(button);
  });

  // ---- forms: send once, name the decision on the button -------------------------------------------
  function sending(form, button) {
    form.dataset.sent = "1";
    if (!button) return;
    button.style.minInlineSize = button.offsetWidth + "px";
    button.setAttribute("aria-disabled", "true");
    button.dataset.was = button.textContent;
    button.textContent = form.dataset.busy || body.dataset.busy;
    const status = form.querySelector("[data-form-status]");
    setTimeout(() => {
      if (form.dataset.sent && status && !status.textContent) status.textContent = body.dataset.slow;
    }, 8000);
    if (form.dataset.progress && status) setTimeout(() => progress(form, status), 1000);
  }
  // While a long form is worked on the page still stands: say how far it is.
  async function progress(form, status) {
    if (!form.dataset.sent) return;
    const of = encodeURIComponent(form.elements.submission.value);
    try {
      const answer = await fetch(`${form.dataset.progress}?submission=${of}`);
      if (answer.status === 200) status.textContent = await answer.text();
    } catch { /* the next question may be answered */ }
    setTimeout(() => progress(form, status), 1000);
  }
  document.addEventListener("submit", (event) => {
    const form = event.target;
    if (form.method !== "post") return;
    if (form.dataset.sent) return event.preventDefault();
    markDrafts(form);
    sending(form, event.submitter || form.querySelector("[type=submit]"));
  });
  addEventListener("pageshow", (event) => {
    if (!event.persisted) return;
    for (const form of all("form[data-sent]")) {
      delete form.dataset.sent;
      for (const button of all("[data-was]", form)) {
        button.removeAttribute("aria-disabled");
        button.textContent = button.dataset.was;
      }
    }
  });
  function follow(form) {
    const button = form.querySelector("[data-follows]");
    const chosen = button && form.querySelector(`[name="${button.dataset.follows}"]:checked`);
    if (!chosen) return;
    button.textContent = chosen.dataset.commit || button.textContent;
    button.classList.toggle("danger", chosen.hasAttribute("data-danger"));
  }
  for (const form of all("form:has([data-follows])")) {
    form.addEventListener("change", () => follow(form));
    follow(form);
  }

  // ---- drafts: text fields only, in this tab only, gone once the form was answered -----------------
  const key = (field) => `draft ${field.form.dataset.draft} ${field.name}`;
  const drafted = (form) => all("textarea, input[type=text]", form).filter((f) => !("noDraft" in f.dataset));
  function markDrafts(form) {
    if (form.dataset.signOut !== undefined) sessionStorage.clear();
    else if (form.dataset.draft) sessionStorage.setItem("drafts sent", form.dataset.draft);
  }
  // A sent draft is kept until a page other than sign-in answers, so that an ended session loses no text.
  const answered = sessionStorage.getItem("drafts sent");
  sessionStorage.removeItem("drafts sent");
  if (answered && body.dataset.signIn === undefined) {
    for (const name of Object.keys(sessionStorage)) {
      if (name.startsWith(`draft ${answered} `)) sessionStorage.removeItem(name);
    }
  }
  for (const form of all("form[data-draft]")) for (const field of drafted(form)) {
    field.value ||= sessionStorage.getItem(key(field)) || "";
    field.addEventListener("input", () => sessionStorage.setItem(key(field), field.value));
  }

  // ---- focus: error summary, conflict panel or result ----------------------------------------------
  document.querySelector("[data-focus]")?.focus();

  for (const box of all("[data-shows]")) box.addEventListener("change", () => {
    document.getElementById(box.dataset.shows).type = box.checked ? "text" : "password";
  });

  // ---- theme ---------------------------------------------------------------------------------------
  const theme = document.getElementById("theme");
  theme?.addEventListener("change", async () => {
    root.dataset.theme = theme.value;
    document.cookie = `theme=${theme.value}; path=/; max-age=31536000; samesite=lax`;
    const { notKept } = theme.form.dataset;
    if (!notKept) return;
    const kept = fetch(theme.form.action, { method: "POST", body: new FormData(theme.form) });
    if ((await kept.catch(() => null))?.status !== 204) say(notKept);
  });

  // ---- the on-screen keyboard hides the bottom bar -------------------------------------------------
  const typed = (node) => node instanceof Element && node.matches("textarea, input:not([type=radio], [type=checkbox])");
  document.addEventListener("focusin", (event) => root.classList.toggle("keyboard-open", typed(event.target)));
  document.addEventListener("focusout", () => root.classList.remove("keyboard-open"));

  // ---- the poll: notices only. It asks; htmx fetches and places what the server answers -------------
  const notices = document.getElementById("notices");
  const live = document.getElementById("live-status");
  if (notices && live && window.htmx) {
    const every = Number(notices.dataset.pollSeconds) * 1000 || 10000;
    const idle = Math.max(60000, every);
    let timer = 0, moved = performance.now(), heard = now(), failing = 0;

    const words = live.querySelector("[data-live-text]");
    function status() {
      lost = failing > 0 && now() - failing >= 30000;
      const text = document.hidden ? live.dataset.paused
        : lost ? fill(live.dataset.lost, { span: span(now() - heard), time: clock(heard) })
          : fill(live.dataset.live, { time: clock(heard) });
      put(words, text);
      live.classList.toggle("is-lost", lost);
      for (const node of all("[data-when-lost]")) node.hidden = !lost;
    }
    function ask() {
      htmx.trigger(notices, "handoff-poll");
    }
    function plan() {
      clearTimeout(timer);
      if (document.hidden) return;
      const quiet = performance.now() - moved > 600000;
      timer = setTimeout(() => { ask(); plan(); }, quiet ? idle : every);
    }
    const ok = (detail) => {
      const there = new URL(detail.xhr.responseURL || location.href).pathname;
      return detail.xhr.status > 0 && detail.xhr.status < 400 && there === notices.dataset.path;
    };
    // A session that ended answers with the sign-in page: that is no notice and must not be placed here.
    document.addEventListener("htmx:beforeSwap", ({ detail }) => {
      if (detail.requestConfig.elt === notices && !ok(detail)) detail.shouldSwap = false;
    });
    notices.addEventListener("htmx:afterRequest", ({ detail }) => {
      if (!ok(detail)) failing ||= now();
      else {
        const date = Date.parse(detail.xhr.getResponseHeader("Date"));
        if (date && Math.abs(date - now()) > 2000) offset = date - Date.now();
        [heard, failing] = [now(), 0];
      }
      status();
    });
    for (const kind of ["pointerdown", "keydown", "scroll"]) {
      addEventListener(kind, () => {
        const slept = performance.now() - moved > 600000;
        moved = performance.now();
        if (slept) { ask(); plan(); }
      }, { passive: true });
    }
    document.addEventListener("visibilitychange", () => {
      status();
      if (!document.hidden) ask();
      plan();
    });
    setInterval(status, 1000);
    status();
    plan();
  }
}

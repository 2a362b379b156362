(() => {
  "use strict";
  const at = id => document.getElementById(id);
  const element = (tag, properties = {}, ...children) => {
    const made = Object.assign(document.createElement(tag), properties);
    made.append(...children);
    return made;
  };
  const capital = text => text[0].toUpperCase() + text.slice(1);
  const pause = milliseconds => new Promise(resolve => setTimeout(resolve, milliseconds));
  const count = (n, noun) => `${n.toLocaleString("en")} ${noun}${n === 1 ? "" : "s"}`;
  const ORDER = ["label", "id", "feature", "out"];
  const ROLES = { label: "Label", feature: "Feature", id: "Names the rows", out: "Leave out" };
  // What can be done, where its settings are chosen, and what it is called.
  const TASKS = {
    recover: { section: "columns", button: "run", problem: "run-problem", note: "run-note", verb: "Recover", doing: "Recovering", wanted: toRecover },
    predict: { section: "predict", button: "predict-run", problem: "predict-problem", note: "predict-note", verb: "Predict", doing: "Predicting", wanted: toPredict },
  };
  const PAGE_TITLE = document.title;
  let job = null, overview = null, polls = 0, task = "recover";
  let tableFile = null, modelFile = null;  // chosen, and not yet handed in

  // Requests: an answer, or an Error whose message can be shown.
  async function ask(path, options) {
    let answer;
    try {
      answer = await fetch(path, options);
    } catch {
      throw new Error("The program behind this page does not answer. If it has ended, start hidldl app again.");
    }
    const content = await answer.json();
    if (answer.ok) return content;
    throw Object.assign(new Error(content.problem), { status: answer.status });
  }
  const post = (path, body) => ask(path, { method: "POST", body });
  const ofJob = path => `jobs/${job}${path}`;

  function show(step) {
    for (const section of document.querySelectorAll("main > section")) section.hidden = section.id !== step;
    for (const item of document.querySelectorAll(".steps li")) {
      if (item.dataset.step === step) item.setAttribute("aria-current", "step");
      else item.removeAttribute("aria-current");
    }
    document.title = ({ running: TASKS[task].doing + " – ", result: "Done – " }[step] ?? "") + PAGE_TITLE;
    scrollTo(0, 0);
    at(step + "-title").focus({ preventScroll: true });
  }

  function tell(id, message = "") {
    at(id).textContent = message;
    at(id).hidden = !message;
  }

  function forget() {
    if (job) navigator.sendBeacon(ofJob("/forget"));
    job = overview = null;
    polls += 1;
  }

  function choose(chosen) {
    task = chosen;
    for (const part of document.querySelectorAll("[data-task]")) part.hidden = part.dataset.task !== task;
    at("running-step").textContent = TASKS[task].verb;
    at("running-title").textContent = TASKS[task].doing;
    tableFile = modelFile = null;
    at("model").value = "";
    tell("table-problem");
    tell("reading");
  }

  // 1. The table, and the model if there is one.
  function handIn(request, message) {
    forget();
    show("table");
    read(async () => { job = (await request()).id; }, message);
  }

  async function read(begin, message) {
    tell("table-problem");
    tell("reading", message);
    at("sheets").hidden = true;
    busy(true);
    try {
      await begin();
      const state = await settled("reading", inLine(message));
      if (!state) return tell("reading");
      if (state.problem) throw new Error(state.problem);
      overview = state.overview;
      if (state.state === "choosing") offer(state.sheets);
      else if (task === "recover") showColumns(state.name);
      else await readModel(state.name);
      tableFile = null;
      tell("reading");
    } catch (error) {
      forget();
      tell("table-problem", error.message);
      tell("reading", task === "predict" ? chosen() : "");
    } finally {
      busy(false);
      at("file").value = at("model").value = "";
    }
  }

  // What to say while a table is read: its place in line, if others come first.
  const inLine = message => state => {
    const now = state.place ? capital(state.what) + "." : message;
    if (at("reading").textContent !== now) tell("reading", now);
  };

  function offer(sheets) {
    at("sheet").replaceChildren(...sheets.map(title => element("option", { value: title }, title)));
    at("sheets").hidden = false;
    at("sheet").focus();
  }

  function busy(is) {
    for (const id of ["file", "model", "sample", "with-model", "without-model"]) at(id).disabled = is;
    at("reading").classList.toggle("busy", is);
  }

  const send = (path, file) => ask(`${path}?name=${encodeURIComponent(file.name)}`, { method: "POST", body: file, headers: { "content-type": "application/octet-stream" } });

  const chosen = () => `Chosen: ${[modelFile && "model " + modelFile.name, tableFile && "table " + tableFile.name].filter(Boolean).join(", ")}.`;

  async function readModel(name) {
    tell("reading", `Reading ${modelFile.name} …`);
    await send(ofJob("/model"), modelFile);
    const state = await settled("reading", inLine(`Reading ${modelFile.name} …`));
    if (!state) return;
    if (state.problem) throw new Error(state.problem);
    showModel(name, state.model);
  }

  // A file that was chosen or dropped; work begins as soon as all are there.
  function take(file, isModel) {
    if (isModel && task !== "predict") choose("predict");
    if (isModel) modelFile = file;
    else tableFile = file;
    const most = Number(document.body.dataset.mostMegabytes);
    if (file.size > most * 1e6) {
      if (isModel) modelFile = null;
      leave(`${file.name} has ${Math.ceil(file.size / 1e6)} MB; this page takes ${most}. Use hidldl ${task} in a shell, which takes files of any size.`);
    } else if (task === "predict" && !(modelFile && tableFile)) {
      if (at("table").hidden) leave();
      tell("table-problem");
      tell("reading", `${chosen()} Now choose the ${modelFile ? "table of new rows" : "model"}.`);
      at(modelFile ? "file" : "model").focus();
    } else {
      const table = tableFile;
      handIn(() => send("jobs", table), `Reading ${table.name} …`);
    }
  }

  // The job's state once it has left the one given; undefined if the page has moved on to another table meanwhile.
  async function settled(leaving, watch = () => {}) {
    const mine = ++polls;
    for (let wait = 100; ; wait = Math.min(600, wait * 1.3)) {
      await pause(wait);
      if (mine !== polls) return undefined;
      const state = await ask(ofJob(leaving === "reading" ? "?overview" : ""));
      if (mine !== polls) return undefined;
      if (state.state !== leaving) return state;
      watch(state);
    }
  }

  // 2. The columns.
  const roleSelect = role => {
    const select = element("select", {}, ...Object.entries(ROLES).map(([value, text]) => element("option", { value }, text)));
    select.value = role;
    return select;
  };
  // Some names in parentheses; each keeps its own direction of writing.
  const listed = names => names.length ? ` (${names.slice(0, 8).map(name => `\u2068${name}\u2069`).join(", ")}${names.length > 8 ? ", …" : ""})` : "";
  const shownName = name => name === "" ? "(no name)" : name;
  const rows = () => [...at("roles").tBodies[0].rows].sort((a, b) => a.dataset.column - b.dataset.column);
  const roles = () => rows().map(row => row.dataset.role);

  function showColumns(name) {
    at("table-name").textContent = `${name}: ${count(overview.n_rows, "row")}, ${count(overview.columns.length, "column")}`;
    tell("guess-problem", overview.problem ?? "");
    at("running-name").textContent = at("table-name").textContent;
    tell("run-problem");
    tell("run-note");
    const lines = overview.columns.map((column, j) => {
      const select = roleSelect(column.role);
      select.setAttribute("aria-label", "What is " + shownName(column.name) + "?");
      const holds = element("td", {}, column.holds, ...(column.why ? [element("small", {}, "left out: " + column.why)] : []));
      const line = element("tr", {}, element("th", { scope: "row" }, element("bdi", {}, shownName(column.name))), holds, element("td", {}, select));
      Object.assign(line.dataset, { role: column.role, column: j });
      return line;
    });
    // Labels first: they are what a user has to look at. Lines stay where they are when their role is changed.
    if (!overview.problem) lines.sort((a, b) => ORDER.indexOf(a.dataset.role) - ORDER.indexOf(b.dataset.role));
    at("roles").tBodies[0].replaceChildren(...lines);
    at("notes").replaceChildren(...overview.notes.map(note => element("li", {}, note)));
    at("understood").hidden = !overview.notes.length;
    for (const id of ["from", "to"]) at(id).replaceChildren(...overview.columns.map((column, j) => element("option", { value: j }, shownName(column.name))));
    at("to").value = overview.columns.length - 1;
    at("several").hidden = overview.columns.length < 8;
    showFirstRows();
    for (const [id, value] of [["hidden", "auto"], ["amounts", ""], ["method", "bayes"]]) at(id).value = value;
    settle();
    summarise();
    show("columns");
  }

  function showFirstRows() {
    const shown = overview.first_rows[0]?.length ?? 0;
    const cell = text => text === null ? element("td", { className: "gap" }, "empty") : element("td", { title: text }, text);
    at("preview").tHead.replaceChildren(element("tr", {}, ...overview.columns.slice(0, shown).map(column => element("th", { scope: "col" }, shownName(column.name)))));
    at("preview").tBodies[0].replaceChildren(...overview.first_rows.map(row => element("tr", {}, ...row.map(cell))));
  }

  const hasIntervals = () => "hasIntervals" in at("method").selectedOptions[0].dataset;

  function setRole(line, role) {
    line.dataset.role = role;
    line.querySelector("select").value = role;
    line.classList.remove("at-fault");
  }

  function summarise() {
    const current = roles(), number = role => current.filter(one => one === role).length;
    const namer = current.indexOf("id");
    const labels = overview.columns.filter((_, j) => current[j] === "label").map(column => column.name);
    const asGuessed = !overview.problem && overview.columns.every((column, j) => column.role === current[j]);
    at("summary").textContent = `${asGuessed ? "Guessed: " : ""}${count(labels.length, "label")}${listed(labels)}, ${count(number("feature"), "feature")}` + (number("out") ? `, ${number("out")} left out` : "")
      + (namer < 0 ? "; rows go by number." : `; rows are named by \u2068${shownName(overview.columns[namer].name)}\u2069.`)
      + (asGuessed ? ` The labels look like ${overview.guessed_as}. Correct below what is wrong.` : "");
    at("hidden-meaning").textContent = hiddenMeaning(asGuessed);
  }

  // What the choice for hidden labels means with this method; only some can weigh zeros.
  function hiddenMeaning(asGuessed) {
    const weighs = "tellsZeros" in at("method").selectedOptions[0].dataset, choice = at("hidden").value;
    if (choice === "unknown") return weighs ? "Nobody knows which zeros are hidden: each is weighed, by the features and the other labels." : "This method cannot tell which zeros are hidden; choose BayesHidLDL.";
    if (choice !== "auto") return "";
    if (!asGuessed) return `Empty cells are hidden; if none is empty, ${weighs ? "each 0 is weighed" : "zeros are"}.`;
    return overview.zeros_unknown && !weighs ? "In this table zeros are hidden: this method cannot tell which are." : `In this table ${overview.hidden}.`;
  }

  function settle() {
    at("mark").hidden = at("hidden").value !== "number";
    const method = at("method").selectedOptions[0].dataset;
    at("intervals").disabled = !hasIntervals();
    at("method-summary").textContent = method.summary + (hasIntervals() ? "" : " No intervals.");
    summarise();
  }

  at("roles").addEventListener("change", event => {
    tell("run-problem");  // it was about other columns
    tell("guess-problem");
    const line = event.target.closest("tr");
    // Only one column names the rows: the last one that was chosen.
    if (event.target.value === "id") rows().filter(row => row.dataset.role === "id").forEach(row => setRole(row, "out"));
    setRole(line, event.target.value);
    summarise();
  });
  at("role-of-several").replaceChildren(...["label", "feature", "out"].map(role => element("option", { value: role }, ROLES[role])));
  at("set").addEventListener("click", () => {
    const [first, last] = [Number(at("from").value), Number(at("to").value)].sort((a, b) => a - b);
    rows().slice(first, last + 1).forEach(row => setRole(row, at("role-of-several").value));
    summarise();
  });
  for (const id of ["hidden", "method"]) at(id).addEventListener("change", settle);

  // 2. Or the model.
  function showModel(name, model) {
    at("new-name").textContent = at("running-name").textContent = `${name}: ${count(overview.n_rows, "row")}`;
    const from = model.features.length ? count(model.features.length, "feature") + listed(model.features) : "labels alone";
    at("predict-summary").textContent = `\u2068${modelFile.name}\u2069 (${model.method}) predicts ${count(model.labels.length, "label")}${listed(model.labels)} from ${from}.`;
    at("predict-notes").replaceChildren(...model.notes.map(note => element("li", {}, note)));
    at("new-intervals").disabled = !model.has_intervals;
    at("new-amounts").value = "";
    tell("predict-problem");
    tell("predict-note");
    show("predict");
  }

  // 3. The run.
  function refused(message) {
    const { section, problem } = TASKS[task];
    show(section);
    tell(problem, message);
    if (task === "recover") overview.columns.forEach((column, j) => rows()[j].classList.toggle("at-fault", Boolean(column.name) && message.includes(`column '${column.name}'`)));
    at(problem).scrollIntoView({ block: "center" });
    at(problem).focus({ preventScroll: true });
  }

  function toRecover() {
    return ["/run", {
      roles: roles(), hidden: at("hidden").value === "number" ? at("mark").value.trim() || "a number" : at("hidden").value,
      amounts: Boolean(at("amounts").value), method: at("method").value, intervals: hasIntervals() && at("intervals").checked,
    }];
  }

  function toPredict() {
    return ["/predict", { amounts: Boolean(at("new-amounts").value), intervals: !at("new-intervals").disabled && at("new-intervals").checked }];
  }

  async function run() {
    const { section, button, problem, note, wanted } = TASKS[task], [path, settings] = wanted();
    tell(problem);
    tell(note);
    try {
      at(button).disabled = true;
      await post(ofJob(path), JSON.stringify(settings)).finally(() => { at(button).disabled = false; });
      at("bar").value = 0;
      at("what").textContent = "starting";
      at("cancel").disabled = false;
      show("running");
      const state = await settled("running", watcher());
      if (!state) return;
      if (state.state === "done") showResult(state.files);
      else if (state.cancelled) {
        show(section);
        tell(note, state.problem);
        at(button).focus();
      }
      else refused(state.problem);
    } catch (error) {
      if (error.status === 404) leave(error.message);
      else refused(error.message);
    }
  }

  function watcher() {
    const began = Date.now();
    return state => {
      at("bar").value = state.share;
      // What is said aloud changes with the step, not with every row.
      const what = capital(state.what);
      if (at("what").textContent !== what) at("what").textContent = what;
      at("seconds").textContent = `${state.place ? "" : Math.round(100 * state.share) + " %, "}${Math.round((Date.now() - began) / 1000)} s`;
    };
  }

  for (const id of ["run", "predict-run"]) at(id).addEventListener("click", run);
  at("cancel").addEventListener("click", async () => {
    at("cancel").disabled = true;
    at("what").textContent = "Cancelling";
    await post(ofJob("/cancel")).catch(() => {});
  });

  // 4. The result.
  function showResult(files) {
    for (const link of document.querySelectorAll("[data-which]")) {
      link.hidden = !files.includes(link.dataset.which);
      link.href = ofJob("/files/" + link.dataset.which);
    }
    at("alone").href = at("report").src = ofJob("/report");
    show("result");
  }

  function leave(message = "") {
    forget();
    at("sheets").hidden = true;
    at("report").removeAttribute("src");
    show("table");
    tell("table-problem", message);
  }

  at("again").addEventListener("click", () => show(TASKS[task].section));
  for (const id of ["another", "other-files", "next-table"]) at(id).addEventListener("click", () => leave());
  at("with-model").addEventListener("click", () => { choose("predict"); at("model").focus(); });
  at("without-model").addEventListener("click", () => { leave(); choose("recover"); at("with-model").focus(); });

  // Files come by the button or are dropped anywhere.
  for (const id of ["file", "model"]) at(id).addEventListener("change", () => at(id).files[0] && take(at(id).files[0], id === "model"));
  at("read-sheet").addEventListener("click", () => read(() => post(ofJob("/sheet?name=" + encodeURIComponent(at("sheet").value))), `Reading ${at("sheet").value} …`));
  at("sample").addEventListener("click", () => handIn(() => post("sample"), "Making the sample …"));
  for (const kind of ["dragover", "dragleave", "drop"]) addEventListener(kind, event => {
    event.preventDefault();
    at("table").classList.toggle("over", kind === "dragover");
    const file = kind === "drop" && event.dataTransfer.files[0];
    if (file && at("running").hidden && !at("file").disabled) take(file, /\.(npz|json)$/i.test(file.name));
  });

  // The server forgets a table whose page is silent; a closed page says so itself.
  setInterval(() => job && ask(ofJob("")).catch(error => error.status === 404 && leave(error.message)), 60_000);
  addEventListener("pagehide", forget);
  addEventListener("pageshow", event => event.persisted && location.reload());
  show("table");
})();

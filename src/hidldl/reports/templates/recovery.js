(() => {
  "use strict";
  const at = id => document.getElementById(id);
  const root = document.documentElement, theme = at("theme");
  const systemIsDark = matchMedia("(prefers-color-scheme: dark)");
  const isDark = () => (root.dataset.theme ?? (systemIsDark.matches ? "dark" : "light")) === "dark";
  const nameTheme = () => { theme.textContent = isDark() ? "Light theme" : "Dark theme"; };
  theme.addEventListener("click", () => { root.dataset.theme = isDark() ? "light" : "dark"; nameTheme(); });
  systemIsDark.addEventListener("change", nameTheme);
  theme.hidden = false;
  nameTheme();

  // Shares are whole numbers of the smallest unit that is shown, masses of a tenth of a percent: nothing is rounded twice.
  const { labels, digits, rows: table, n_rows: size, first, kinds } = JSON.parse(at("rows-data").textContent);
  const rows = table.map(([number, name, mass, handedIn, recovered, kind, doubt, low, high]) => ({ number, name, mass, handedIn, recovered, kind, doubt, low, high }));
  const search = at("search"), list = at("list"), order = at("order"), body = at("row-table").tBodies[0];
  const percent = (units, places = digits) => (units / 10 ** digits).toFixed(places) + "\u00a0%";
  const whole = 10 ** (digits + 2);
  const tenths = mass => (mass / 10).toFixed(1) + "\u00a0%";
  const element = (tag, properties = {}, ...children) => {
    const node = Object.assign(document.createElement(tag), properties);
    node.append(...children);
    return node;
  };
  const isolated = text => "\u2068" + text + "\u2069";
  const titled = row => row.name === String(row.number) ? "row " + row.number : isolated(row.name);
  let shown = rows.find(row => row.number === first);

  function bars(row, j, scale) {
    const pair = element("span", { className: row.low ? "pair with-interval" : "pair" });
    const bar = (className, units) => {
      const node = element("i", { className });
      node.style.width = 100 * units / scale + "%";
      if (!units) node.style.visibility = "hidden";
      return node;
    };
    pair.setAttribute("aria-hidden", "true");
    pair.append(row.handedIn[j] === null ? element("i", { className: "gap" }) : bar("handed", row.handedIn[j]), bar("recovered", row.recovered[j]));
    if (row.low) {
      const whisker = element("b");
      whisker.style.left = 100 * row.low[j] / scale + "%";
      whisker.style.width = 100 * (row.high[j] - row.low[j]) / scale + "%";
      pair.append(whisker);
    }
    return pair;
  }

  function hiddenText(row, j) {
    const chance = row.doubt === null ? 100 : row.doubt[j];
    if (chance === 100) return "? hidden";
    return chance >= 50 ? `0, probably overlooked (${chance}\u00a0%)` : `0, probably true (overlooked: ${chance}\u00a0%)`;
  }

  function line(row, j, scale) {
    const hidden = row.handedIn[j] === null;
    const name = element("th", { scope: "row" }, element("bdi", { className: "name", title: labels[j] }, labels[j]));
    const handedIn = hidden ? element("span", { className: "flag-text" }, hiddenText(row, j)) : percent(row.handedIn[j]);
    const recovered = element("td", {}, percent(row.recovered[j]));
    if (row.low) recovered.append(element("small", {}, percent(row.low[j]).replace("\u00a0%", "") + "–" + percent(row.high[j])));
    return element("tr", {}, name, element("td", { className: "bars" }, bars(row, j, scale)), element("td", {}, handedIn), recovered);
  }

  function show(row) {
    shown = row;
    const scale = Math.min(whole, whole / 20 * Math.ceil(Math.max(1, ...row.recovered, ...row.handedIn, ...(row.high ?? [])) / (whole / 20)));
    const hidden = row.handedIn.filter(share => share === null).length;
    const inDoubt = row.doubt !== null && row.doubt.some(chance => chance > 0 && chance < 100);
    at("row-name").textContent = titled(row);
    at("row-text").textContent = `Row ${row.number.toLocaleString("en")}: ` + (hidden === labels.length
      ? "no label was seen, so all shares are predicted."
      : inDoubt ? `${hidden} of ${labels.length} labels ${hidden === 1 ? "is" : "are"} 0 or empty; about ${(row.doubt.reduce((sum, chance) => sum + chance, 0) / 100).toFixed(1)} of them overlooked. What was overlooked holds ${tenths(row.mass)} of the row on average.`
      : hidden ? `${hidden} of ${labels.length} labels ${hidden === 1 ? "was" : "were"} hidden and ${hidden === 1 ? "holds" : "hold"} ${tenths(row.mass)}; what was seen is really ${tenths(1000 - row.mass)} of the row.`
      : "nothing was hidden.") + (row.kind ? ` Of kind ${row.kind[0]} of ${kinds.length}, ${kinds[row.kind[0] - 1]} (${row.kind[1]}\u00a0% likely).` : "");
    at("row-scale").textContent = "bars from 0 to " + percent(scale, 0);
    const places = labels.map((_, j) => j);
    if (order.value !== "table") places.sort((a, b) => row.recovered[b] - row.recovered[a]);
    if (order.value === "hidden") places.sort((a, b) => (row.handedIn[b] === null) - (row.handedIn[a] === null));
    body.replaceChildren(...places.map(j => line(row, j, scale)));
    list.value = String(row.number);
    at("previous").disabled = !neighbour(-1);
    at("next").disabled = !neighbour(1);
  }

  function neighbour(step) {
    const options = [...list.options], here = options.findIndex(option => option.value === String(shown.number));
    return options[here < 0 ? (step > 0 ? 0 : -1) : here + step];
  }

  function pick(number) {
    const row = rows.find(row => row.number === Number(number));
    if (!row) return;
    show(row);
    history.replaceState(null, "", "#row=" + row.number);
  }

  // Scrolls to a match, and marks it until there is another.
  function jump(node, focus) {
    document.querySelector(".target")?.classList.remove("target");
    node.classList.add("target");
    node.scrollIntoView({ block: node.matches("tr") ? "center" : "start" });
    focus.focus({ preventScroll: true });
  }

  function matching() {
    const wanted = search.value.trim().toLowerCase();
    const matches = rows.filter(row => row.name.toLowerCase().includes(wanted) || String(row.number).startsWith(wanted));
    const best = matches.find(row => row.name.toLowerCase() === wanted) ?? matches.find(row => String(row.number) === wanted) ?? matches[0];
    return { wanted, matches, best };
  }

  // A page about a long table does not hold all of its rows: what it lacks is not said to be absent from the table.
  function absence(wanted) {
    const here = `This page holds ${rows.length.toLocaleString("en")} of the ${size.toLocaleString("en")} rows`;
    if (rows.length === size) return "No row matches";
    const number = /^\d+$/.test(wanted) && Number(wanted);
    return number && number <= size ? `${here}, and not row ${number.toLocaleString("en")}` : `No match here. ${here}`;
  }

  const lineInList = wanted => [...document.querySelectorAll("#again-table tbody tr[id]")].find(row => row.cells[0].textContent.trim().toLowerCase() === wanted || row.cells[1].dataset.value === wanted);

  function filter() {
    const { wanted, matches } = matching();
    list.replaceChildren(...matches.map(row => element("option", { value: row.number }, titled(row) + (row.handedIn.includes(null) ? ` · ${Math.round(row.mass / 10)} % hidden` : " · complete"))));
    const count = `${matches.length.toLocaleString("en")} of ${rows.length.toLocaleString("en")} rows match`;
    at("matches").textContent = !wanted ? "" : matches.length ? count : absence(wanted) + (lineInList(wanted) ? "; it is in the list of rows to annotate again: press Enter" : "") + ".";
    show(shown);
  }

  function find() {
    const { wanted, best } = matching();
    const line = best ? null : lineInList(wanted);
    if (best) {
      pick(best.number);
      jump(document.querySelector(".shown"), at("row-name"));
    } else if (line) {
      line.tabIndex = -1;
      line.hidden = line.parentElement.hidden = false;
      jump(line, line);
    }
  }

  function followLink() {
    const number = /^#row=(\d+)$/.exec(location.hash)?.[1];
    if (!number) return;
    if (!rows.some(row => row.number === Number(number))) {
      at("matches").textContent = absence(number) + ".";
      return;
    }
    search.value = "";
    filter();
    pick(number);
    jump(document.querySelector(".shown"), at("row-name"));
  }

  search.addEventListener("input", filter);
  search.addEventListener("keydown", event => {
    if (event.key === "Enter") {
      event.preventDefault();
      find();
    } else if (event.key === "ArrowDown" && list.options.length) {
      event.preventDefault();
      list.selectedIndex = Math.max(0, list.selectedIndex);
      list.focus();
      pick(list.value);
    }
  });
  search.form.addEventListener("submit", event => event.preventDefault());
  list.addEventListener("change", () => pick(list.value));
  order.addEventListener("change", () => show(shown));
  for (const [id, step] of [["previous", -1], ["next", 1]]) at(id).addEventListener("click", () => neighbour(step) && pick(neighbour(step).value));
  addEventListener("hashchange", followLink);
  if (labels.length > 15) order.value = "share";
  at("picked").hidden = false;
  filter();
  followLink();
})();

(() => {
  "use strict";
  const at = id => document.getElementById(id);

  // Opened for print, where nobody can click, and closed again afterwards.
  let folds = [];
  addEventListener("beforeprint", () => { folds = [...document.querySelectorAll("details:not([open])")]; for (const fold of folds) fold.open = true; });
  addEventListener("afterprint", () => { for (const fold of folds) fold.open = false; });
  const unfold = () => {
    const fold = location.hash.length > 1 && at(location.hash.slice(1))?.closest("details");
    if (fold) fold.open = true;
  };
  addEventListener("hashchange", unfold);
  unfold();

  const collator = new Intl.Collator("en", { numeric: true });
  const key = (row, column) => row.cells[column].dataset.value ?? row.cells[column].textContent.trim();

  function sort(table, column, descending) {
    const sign = descending ? -1 : 1;
    for (const body of table.tBodies) {
      const rows = [...body.rows].filter(row => !row.classList.contains("heading"));
      const compare = rows[0]?.cells[column].dataset.value === undefined
        ? (a, b) => collator.compare(key(a, column), key(b, column))
        : (a, b) => key(a, column) - key(b, column);
      body.append(...rows.sort((a, b) => sign * compare(a, b)));
    }
    for (const head of table.tHead.rows[0].cells) head.removeAttribute("aria-sort");
    table.tHead.rows[0].cells[column].setAttribute("aria-sort", descending ? "descending" : "ascending");
  }

  for (const table of document.querySelectorAll("table.sortable")) {
    for (const [column, head] of [...table.tHead.rows[0].cells].entries()) {
      if (head.dataset.fixed !== undefined) continue;
      const button = document.createElement("button");
      button.type = "button";
      button.append(...head.childNodes);
      head.append(button);
      // The largest figures come first, and so does the first letter.
      const falls = table.tBodies[0].rows[0]?.cells[column]?.dataset.value !== undefined;
      button.addEventListener("click", () => {
        const now = head.getAttribute("aria-sort");
        sort(table, column, now ? now === "ascending" : falls);
      });
    }
  }

  const table = at("again-table");
  if (!table) return;
  const { header, lines } = JSON.parse(at("again-data").textContent);
  const rows = [...table.rows].filter(row => row.id);
  const lineOf = new Map(rows.map((row, i) => [row, lines[i]]));
  const texts = new Map(rows.map(row => [row, [row.cells[1].textContent, row.cells[1].dataset.value, ...[...row.querySelectorAll("bdi")].map(name => name.textContent)].join("\n").toLowerCase()]));
  const box = at("again-filter"), count = at("again-count");

  function filter() {
    const wanted = box.value.trim().toLowerCase();
    for (const row of rows) row.hidden = !texts.get(row).includes(wanted);
    for (const body of table.tBodies) body.hidden = [...body.rows].every(row => row.hidden || row.classList.contains("heading"));
    const shown = rows.filter(row => !row.hidden).length;
    count.textContent = wanted ? `${shown.toLocaleString("en")} of ${rows.length.toLocaleString("en")} rows` : "";
    at("again-download").disabled = !shown;
  }

  function download() {
    const shown = [...table.rows].filter(row => row.id && !row.hidden).map(row => lineOf.get(row));
    // The mark at the start tells spreadsheets that the text is UTF-8.
    const address = URL.createObjectURL(new Blob(["\ufeff", header, ...shown], { type: "text/csv;charset=utf-8" }));
    const link = document.createElement("a");
    link.href = address;
    link.download = "annotate-again.csv";
    link.click();
    setTimeout(() => URL.revokeObjectURL(address), 10_000);
  }

  box.addEventListener("input", filter);
  at("again-download").addEventListener("click", download);
  at("again-tools").hidden = false;
})();

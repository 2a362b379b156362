"""Recovered tables: their rows, piece by piece, laid out and written."""

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field, fields
from html import escape
from itertools import repeat
from os import PathLike
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import pandas as pd

from hidldl.arrays import FloatArray
from hidldl.base import Recoverer
from hidldl.errors import TableError
from hidldl.progress import Progress, silent
from hidldl.replacing import replacing_all
from hidldl.reports.reannotation import ListOptions, Ranker
from hidldl.reports.recovery_page import Facts, recovery_page
from hidldl.reports.summary import Summarizer, Summary
from hidldl.saving import save_model
from hidldl.tables.cells import CHANGED
from hidldl.tables.folders import uploaded
from hidldl.tables.labels import SHARES, are_percentages
from hidldl.tables.numbers import NumberReader, Part
from hidldl.tables.planning import Plan
from hidldl.tables.reading import Table
from hidldl.tables.rows import Keep, Layout, RecoveredRows, Unit
from hidldl.tables.sources import quoted, quoted_list
from hidldl.tables.writing import Targets, open_writer

CHUNK_ROWS = 20_000
LEVEL_OF_LIST = 0.9


@dataclass
class RecoveredTable:
    """A table with its hidden labels recovered; made by ``recover_table`` and ``predict_table``.

    Attributes
    ----------
    notes : list of str
        What was guessed and decided.
    model : Recoverer
        The fitted model.
    plan : Plan
        How the columns of the table were read.
    level : float or None
        The level of the intervals that tables and reports show, if any.
    """

    table: Table
    plan: Plan
    reader: NumberReader
    model: Recoverer
    notes: list[str]
    level: float | None = None
    whole: Part | None = None
    rows: pd.DataFrame | None = None
    """The rows that the model was fitted to, as numbers and as they came, where those are all rows of the table."""
    done_before: float = 0.0
    """The share of the whole work that was done before the rows are recovered."""
    started: float = 0.0
    faults: "pd.Series[str]" = field(default_factory=lambda: pd.Series(dtype=object))
    """Why rows were left out, by their numbers."""

    @property
    def frame(self) -> pd.DataFrame:
        """The whole table: its columns, with the labels complete, and ``hidden_mass``; its index, if it had one.

        Other columns are as they came. If the table is a large file, it is read again for them.
        """
        layout, pieces = self.layout(digits=None), list(self.pieces(keep="all"))
        frame = pd.concat([rows.frame(layout) for rows in pieces], ignore_index=True)
        if self.table.index is None:
            return frame
        numbers = np.concatenate([rows.numbers for rows in pieces])
        return frame.iloc[:, 1:].set_axis(self.table.index[numbers - 1])

    @property
    def distributions(self) -> pd.DataFrame:
        """The recovered shares, by the names of the rows."""
        return self._by_name(lambda rows: pd.DataFrame(rows.distributions, columns=list(self.plan.roles.labels)))

    @property
    def hidden_mass(self) -> "pd.Series[float]":
        """How much of each row the hidden labels hold, by the names of the rows."""
        return self._by_name(lambda rows: pd.DataFrame({"hidden_mass": rows.hidden_mass}))["hidden_mass"]

    def intervals(self, level: float = 0.9) -> pd.DataFrame:
        """Bounds of every share and of the hidden mass, by the names of the rows, from methods that have them."""
        return self._by_name(lambda rows: rows.bounds(self.plan.roles.labels), level)

    def reannotate(
        self, most_rows: int = 100, *, threshold: float = 0.0, labels_per_row: int = 3, group: str | None = None
    ) -> pd.DataFrame:
        """The rows to annotate again, those first where an answer would tell most, and the labels to ask for.

        Parameters
        ----------
        most_rows : int, default=100
            Rows in the list; as many rows without any label may follow.
        threshold : float, default=0
            The least uncertainty of a row in the list.
        labels_per_row : int, default=3
            Labels to ask for in a row.
        group : str, optional
            A column to show beside each row, such as who annotated it.
        """
        options = ListOptions(most_rows, threshold, labels_per_row, group or "group")
        ranker = Ranker(self.plan.roles.labels, options)
        for rows in self.pieces(level=self._level_of_list()):
            groups = self._groups(rows, group)
            ranker.add(_row_names(rows), rows.observed, rows.distributions, rows.low, rows.high, groups)
        return ranker.finish().frame()

    def _level_of_list(self) -> float | None:
        """Intervals say how uncertain a share is; a list needs them also where the table does not show them."""
        return self.level or (LEVEL_OF_LIST if self.model.has_intervals else None)

    def _groups(self, rows: RecoveredRows, group: str | None) -> Any:
        if group is None:
            return None
        if group not in self.table.columns:
            known = quoted_list(self.table.columns)
            raise TableError(f"{self.table.name} has no column {quoted(group)} to group by; its columns are {known}.")
        if group == self.plan.roles.row_names or rows.as_read is None:
            return _row_names(rows)
        return rows.as_read[group].fillna("").astype(str).to_numpy(object)

    @property
    def bad_rows(self) -> pd.DataFrame:
        """The rows that were left out, with the reason for each."""
        return pd.DataFrame({"row": self.faults.index, "reason": self.faults.to_numpy()})

    def _by_name(self, of: Any, level: float | None = None) -> pd.DataFrame:
        pieces = list(self.pieces(level=level))
        index = np.concatenate([rows.numbers if rows.names is None else rows.names for rows in pieces])
        return pd.concat([of(rows) for rows in pieces]).set_axis(index).rename_axis(self.plan.roles.row_names or "row")

    def pieces(
        self,
        progress: Progress = silent,
        level: float | None = None,
        with_kinds: bool = False,
        keep: Keep = "none",
        as_text: bool = False,
    ) -> Iterator[RecoveredRows]:
        """The recovered rows, in the order of the table; with intervals of a level, and with kinds, if asked for.

        Where zeros may be hidden or true, also with how likely they are hidden. Columns to ``keep`` come as
        `Table.originals` gives them.
        """
        n_rows = self.table.n_rows if self.whole is None else len(self.whole.X)
        done = 0
        names = self._kept(keep)
        originals = self._originals(names, as_text) if names else repeat(None)
        for part, D, as_read in self._completed():
            kept = next(originals, None)
            if names and (kept is None or not np.array_equal(kept.index, part.numbers)):
                raise TableError(CHANGED)
            done += len(D)
            share = self.done_before + (1 - self.done_before) * done / n_rows
            progress(share, 1, f"recovering, {done:,} of {n_rows:,} rows")
            is_asked = level is not None or with_kinds or part.doubts is not None
            arguments = part.arguments_for(self.model, new=True) if is_asked else {}
            bounds: tuple[Any, ...] = () if level is None else self.model.intervals(level, **arguments)
            kinds = self.model.predict_kinds(**arguments) if with_kinds else None
            hidden = None if part.doubts is None else self.model.predict_hidden(**arguments)
            given = (part.numbers, part.names, part.D_obs, part.observed)
            yield RecoveredRows(*given, D, as_read, kept, kinds, hidden, *bounds)

    def _kept(self, keep: Keep) -> list[str]:
        """The columns to keep beside the labels."""
        roles = self.plan.roles
        names = [name for name in self.table.columns if name not in roles.labels]
        return [name for name in names if keep == "all" or (keep == "id" and name == roles.row_names)]

    def _originals(self, names: list[str], as_text: bool) -> Iterator[pd.DataFrame]:
        """Columns as they came, of the rows that are recovered."""
        texts = [name for name in names if name == self.plan.roles.row_names]
        return self._even(self.table.originals(names, CHUNK_ROWS, as_text=as_text, texts=texts))

    def _completed(self) -> Iterator[tuple[Part, FloatArray, pd.DataFrame]]:
        if self.whole is None or self.rows is None:
            for rows in self._even(self.table.chunks(CHUNK_ROWS, as_text=self._texts())):
                part = self.reader(rows)
                yield part, np.asarray(self.model.predict(**part.arguments_for(self.model, new=True))), rows
            return
        fitted = self.whole.has_labels
        D = np.empty_like(self.whole.D_obs)
        D[fitted] = self.model.distributions_
        if not fitted.all():
            D[~fitted] = self.model.predict(self.whole.X[~fitted])
        for start in range(0, len(D), CHUNK_ROWS):
            at = slice(start, start + CHUNK_ROWS)
            yield _rows_of(self.whole, at), D[at], self.rows.iloc[at]

    def _even(self, chunks: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
        """The rows that are not left out, in chunks of one size.

        What is drawn at random for a chunk must not depend on the format of the file.
        """
        waiting: list[pd.DataFrame] = []
        n_waiting = 0
        for chunk in chunks:
            rows = chunk.drop(self.faults.index.intersection(chunk.index))
            waiting.append(rows)
            n_waiting += len(rows)
            while n_waiting >= CHUNK_ROWS:
                rows = pd.concat(waiting)
                yield rows[:CHUNK_ROWS]
                waiting, n_waiting = [rows[CHUNK_ROWS:]], n_waiting - CHUNK_ROWS
        if n_waiting:
            yield pd.concat(waiting)

    def _texts(self) -> list[str]:
        # Categories too, since a table of its own may have nothing but numbers in such a column.
        categories = {name for name, _ in self.reader.encoding.categories}
        roles = self.plan.roles
        numbers = {*roles.labels, *roles.numbers, *roles.categories} - categories
        return [name for name in self.table.columns if name not in numbers]

    def layout(
        self, keep: Keep = "all", unit: Unit | None = None, digits: int | None = 6, flags: bool = False
    ) -> Layout:
        """How the rows are laid out in a table: see ``write``."""
        roles = self.plan.roles
        shown = self.level is not None
        unit = unit or self._unit()
        return Layout(self.table.columns, roles.labels, roles.row_names, keep, unit, digits, flags, shown)

    def _unit(self) -> Unit:
        """Percent where the labels of the table sum to 100."""
        if self.plan.total == SHARES:
            return "shares"
        cells = self.table.first_rows.reindex(columns=list(self.plan.roles.labels)).to_numpy(float)
        return "percent" if are_percentages(cells, self.plan.marks) else "shares"

    def write(
        self,
        output: str | PathLike[str] | None = None,
        *,
        report: str | PathLike[str] | None = None,
        model: str | PathLike[str] | None = None,
        reannotate: str | PathLike[str] | None = None,
        bad_rows: str | PathLike[str] | None = None,
        group: str | None = None,
        most_rows: int = 100,
        keep: Keep = "all",
        unit: Unit | None = None,
        full_precision: bool = False,
        flags: bool = False,
        safe_csv: bool = False,
        command: str = "",
        progress: Progress = silent,
    ) -> Summary:
        """Write the table, a report and the model: all of them complete, or none.

        Parameters
        ----------
        output : path, optional
            The table: .csv, .tsv (also .csv.gz), .parquet or .xlsx; "-" is standard output. A name without an ending
            is a folder of Parquet files, if the table came in one or the folder is there; a URL that fsspec knows is
            one too. It must be new or empty.
        report : path, optional
            A page to look at (.html).
        model : path, optional
            The fitted model (.npz or .json), for ``predict_table``.
        reannotate : path, optional
            A list of the rows to annotate again, as ``reannotate`` gives it.
        bad_rows : path, optional
            A list of the rows that were left out; it is written only if there are any.
        group : str, optional
            A column by which the list and the report are broken down, such as who annotated a row.
        most_rows : int, default=100
            Rows in the list.
        keep : {"all", "id", "none"}
            Which columns beside the labels to keep: all of them, in their order, the names of rows only, or none. They
            stay as they came: as they stand in a file of text if the output is one too, else with their types.
        unit : {"shares", "percent"}, optional
            What to write; as in the input by default.
        full_precision : bool, default=False
            Write all digits. Six are written by default, so that every row still sums to 1 exactly.
        flags : bool, default=False
            Also a column per label that says whether it was hidden.
        safe_csv : bool, default=False
            In .csv and .tsv files, write an apostrophe before texts that a spreadsheet program would take as formulas:
            those that begin with =, +, - or @ and are no numbers.
        command : str
            What the report names as the way it was made.
        progress : callable, optional
            Called with what is done, of how much, and words.

        Returns
        -------
        Summary
            What was hidden and recovered, in numbers.
        """
        paths = (output, report, model, reannotate, bad_rows if len(self.faults) else None)
        targets = Targets(*(None if path is None else Path(path) for path in paths), in_parts=self.table.in_parts)
        layout = self.layout(keep, unit, None if full_precision else 6, flags)
        options = ListOptions(most_rows, group_name=group or "group")
        summarizer = Summarizer(self.plan.roles.labels, reannotation=options)
        level = self._level_of_list() if reannotate is not None else self.level
        with ExitStack() as stack:
            elsewhere = None if targets.url is None else stack.enter_context(uploaded(targets.url))
            here = stack.enter_context(replacing_all([*targets.files.values()], folders=targets.folders))
            places = dict(zip(targets.files, here, strict=True))
            if targets.model is not None:
                self.save_model(places["model"])
            writer = None
            if targets.output is not None:
                place = elsewhere or places.get("output")
                writer = stack.enter_context(
                    open_writer(targets.output, place, self.table.delimiter, self.table.decimal, safe=safe_csv)
                )
            with_kinds = report is not None and bool(self._kinds())
            kept: Keep = "none" if writer is None else keep
            for rows in self.pieces(progress, level, with_kinds, kept, targets.is_text):
                if writer is not None:
                    writer.write(rows.frame(layout))
                more = (rows.low, rows.high, self._groups(rows, group), rows.kinds, rows.hidden)
                summarizer.add(_row_names(rows), rows.D_obs, rows.observed, rows.distributions, *more)
            summary = summarizer.finish()
            for what in [name for name in ("reannotate", "bad_rows") if name in places]:
                rows_listed = summary.reannotation.frame() if what == "reannotate" else self.bad_rows
                listing = stack.enter_context(open_writer(targets.files[what], places[what], safe=safe_csv))
                listing.write(rows_listed)
            if targets.report is not None:
                page = recovery_page(summary, self._facts(command, perf_counter() - self.started))
                places["report"].write_text(page, encoding="utf-8")
        return summary

    def report(self, path: str | PathLike[str]) -> None:
        """Write a page about what was hidden and recovered, which needs nothing from elsewhere."""
        self.write(report=path, command="hidldl.recover_table(...)")

    def save_model(self, path: str | PathLike[str]) -> None:
        """Save the model with what ``predict_table`` needs to read another table of the same kind."""
        about = {
            "roles": asdict(self.plan.roles),
            "marks": asdict(self.plan.marks),
            "normalise": self.plan.total is None,
            "encoding": asdict(self.reader.encoding),
        }
        save_model(path, self.model, about)

    def _kinds(self) -> list[str]:
        return self.model.describe_kinds(self.plan.roles.labels)

    def _rates(self) -> list[tuple[float, float]] | None:
        """How often each label is overlooked, and the standard error, where that had to be inferred."""
        known = self.model.hidden_rates() if self.plan.marks.unknown else None
        return None if known is None else list(zip(*(array.tolist() for array in known), strict=True))

    def _facts(self, command: str, seconds: float) -> Facts:
        return Facts(
            source=self.table.name,
            method=self.model.method_name,
            parameters=self.model.parameters_,
            seconds=seconds,
            command=command,
            # Readers of the report did not run the command, so remedies are left out.
            notes=[getattr(note, "text", note) for note in self.notes],
            level=self.level,
            kinds=self._kinds(),
            rates=self._rates(),
            selection=getattr(self.model, "selection_", None),
            history=getattr(self.model, "history_", None),
            converged=getattr(self.model, "converged_", None),
        )

    def _repr_html_(self) -> str:
        notes = "".join(f"<li>{escape(note)}</li>" for note in self.notes)
        # The first piece only: a long table is not completed for ten rows of it.
        first = next(self.pieces(keep="all")).frame(self.layout())
        return f"<ul>{notes}</ul>{first.head(10).to_html(border=0)}"


def _row_names(rows: RecoveredRows) -> list[str]:
    """What to call the rows: their names, or their numbers."""
    return [f"row {number}" for number in rows.numbers] if rows.names is None else list(map(str, rows.names))


def _rows_of(whole: Part, at: slice) -> Part:
    arrays = (getattr(whole, each.name) for each in fields(whole))
    pieces: list[Any] = [None if array is None else array[at] for array in arrays]
    return Part(*pieces)

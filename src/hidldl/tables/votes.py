"""Long tables of votes, as annotation tools export them: one row per item, annotator and label."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from hidldl.errors import TableError
from hidldl.tables.reading import Table
from hidldl.tables.sources import quoted, quoted_list

ITEMS = ("task", "item", "item_id", "task_id", "image", "image_id", "text_id", "document", "sample", "example", "id")
ANNOTATORS = ("worker", "annotator", "rater", "user", "worker_id", "annotator_id", "rater_id", "coder", "judge")
LABELS = ("label", "labels", "emotion", "answer", "category", "class", "vote", "annotation")
MOST_LABELS = 500
LIST_MARKS = re.compile(r"\s*[;|]\s*")
"""What separates labels in a cell that holds several."""
N_VOTES = "n_votes"


@dataclass(frozen=True)
class VoteCounts:
    """Votes counted: a row per item, a column per label, and what is known of the items."""

    frame: pd.DataFrame
    item: str
    labels: tuple[str, ...]
    notes: tuple[str, ...]


def guess_vote_columns(table: Table) -> tuple[str, str, str | None] | None:
    """The columns of items, labels and annotators, if the table looks like a long one; None otherwise.

    It has a column called like items, one called like annotators and one called like labels that holds few different
    values, as crowd-kit's task, worker and label.
    """
    called = {name.strip().lower(): name for name in table.columns}
    item, annotator, label = (
        next((called[name] for name in names if name in called), None) for names in (ITEMS, ANNOTATORS, LABELS)
    )
    if item is None or annotator is None or label is None:
        return None
    contents = table.contents()
    n_labels = next(column.n_distinct for column in contents.columns if column.name == label)
    is_long = n_labels <= MOST_LABELS and contents.first_rows[item].duplicated().any()
    return (item, label, annotator) if is_long else None


def count_votes(
    table: Table,
    item: str,
    label: str,
    annotator: str | None = None,
    *,
    shown: str | None = None,
    features: Table | None = None,
) -> VoteCounts:
    """Count the votes of a long table.

    Parameters
    ----------
    table : Table
        One row per vote.
    item, label, annotator : str
        The columns that name what was annotated, the label that was chosen, and who chose it. A cell may hold several
        labels, separated by ";" or "|". With annotators, the same label of the same annotator for an item counts once;
        rows without one are of annotators of their own.
    shown : str, optional
        A column with the labels that the annotator could choose from, separated in the same way. A label that nobody
        was shown for an item is hidden there; one that was shown and got no vote is a true zero.
    features : Table, optional
        A table with a row per item, joined by the column that has the name of ``item``. Other columns of the long table
        that are the same in all rows of an item are features too.
    """
    for name in (item, label, annotator, shown):
        if name is not None and name not in table.columns:
            names = quoted_list(table.columns)
            raise TableError(f"{table.name} has no column {quoted(name)}; its columns are {names}.")
    texts = [name for name in (item, label, annotator, shown) if name is not None]
    rows = table.read(as_text=texts)
    n_nameless = int(rows[item].isna().sum())
    rows = rows.dropna(subset=[item])
    votes = _one_label_each(rows, label, [item, *([annotator] if annotator else [])])
    n_empty = int(rows[label].isna().sum())
    n_again = 0
    if annotator is not None:
        # Nobody knows who gave votes without an annotator, so they may be of different ones.
        again = votes.duplicated([item, annotator, label]) & votes[annotator].notna()
        n_again, votes = int(again.sum()), votes[~again]
    counts = pd.crosstab(votes[item], votes[label]).astype(float).reindex(pd.unique(rows[item]), fill_value=0.0)
    counts.columns = pd.Index(counts.columns.astype(str))
    if counts.shape[1] < 2:
        raise TableError(f"column {quoted(label)} of {table.name} holds one label; a distribution needs two or more.")
    if counts.shape[1] > MOST_LABELS:
        raise TableError(
            f"column {quoted(label)} of {table.name} holds {counts.shape[1]:,} different labels; name another column."
        )
    n_votes = counts.sum(axis=1)
    if shown is not None:
        counts = counts.where(_was_shown(rows, item, shown, counts))
    counts = counts.where(n_votes > 0)  # items without any vote have no labels
    known = _known_of_items(rows, item, texts, features, table.name)
    known = known.rename(columns={name: f"{name}_feature" for name in known if name in counts or name == N_VOTES})
    frame = pd.concat([known.reindex(counts.index), counts.assign(**{N_VOTES: n_votes})], axis=1)
    notes = [
        f"{len(votes):,} votes for {counts.shape[1]} labels on {len(counts):,} items are counted",
        *([f"rows without a label: {n_empty:,}"] if n_empty else []),
        *([f"rows without an item, which are left out: {n_nameless:,}"] if n_nameless else []),
        *([f"votes of an annotator for the same label and item again, which count once: {n_again:,}"] * (n_again > 0)),
    ]
    return VoteCounts(frame.rename_axis(item).reset_index(), item, tuple(counts.columns), tuple(notes))


def _one_label_each(rows: pd.DataFrame, label: str, names: Sequence[str]) -> pd.DataFrame:
    """One row per vote, also where a cell holds several labels."""
    votes = rows[[*names, label]].dropna(subset=[label])
    split = votes[label].str.strip(" ;|").str.split(LIST_MARKS, regex=True)
    votes = votes.assign(**{label: split}).explode(label)
    return votes[votes[label].astype(str).str.len() > 0]


def _was_shown(rows: pd.DataFrame, item: str, shown: str, counts: pd.DataFrame) -> Any:
    """For each item and label, whether some annotator could choose it; a label with a vote was shown."""
    lists = _one_label_each(rows, shown, [item]).drop_duplicates()
    could = pd.crosstab(lists[item], lists[shown]).reindex(index=counts.index, columns=counts.columns, fill_value=0)
    return (could.to_numpy() > 0) | (counts.to_numpy() > 0)


def _known_of_items(
    rows: pd.DataFrame, item: str, used: Sequence[str], features: Table | None, name: str
) -> pd.DataFrame:
    """Columns of the long table that are the same in all rows of an item, and the table of features."""
    others = [column for column in rows.columns if column not in used]
    first = rows.drop_duplicates(item).set_index(item)[others]
    repeated = first.loc[rows[item]].reset_index(drop=True)
    same = repeated.eq(rows[others].reset_index(drop=True)) | (
        repeated.isna() & rows[others].reset_index(drop=True).isna()
    )
    known = first.loc[:, same.all()]
    if features is None:
        return known
    if item not in features.columns:
        raise TableError(
            f"{features.name} has no column {quoted(item)}, by which it could be joined with {name}; rename one."
        )
    more = features.read(as_text=[item]).drop_duplicates(item).set_index(item)
    if not known.index.isin(more.index).any():
        raise TableError(f"no item of {name} is in {features.name}; are both named by {quoted(item)}?")
    return known.join(more[[column for column in more if column not in known]])
